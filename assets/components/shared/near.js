// What is near the window: all else may wait.

/** Of a window, above and below it: for what Python has still to send, and for what is only drawn. */
export const FAR = "50% 0px";
export const CLOSE = "25% 0px";

/** Keep `view.near` true while an element lies near the window, or for good once the page is printed; tell each change. */
export function watchNear(view, onChange, around, element = view.parts.root) {
  const come = () => {
    view.near = true;
    view.forGood = true;
    onChange(view);
  };
  view.ending = new AbortController();
  const { signal } = view.ending;
  globalThis.addEventListener("beforeprint", come, { signal });
  matchMedia("print").addEventListener("change", ({ matches }) => matches && come(), { signal });
  view.forGood = !globalThis.IntersectionObserver || matchMedia("print").matches;
  view.near = view.forGood;
  if (view.near) return;
  const sight = new IntersectionObserver(
    (seen) => {
      view.near = view.forGood || seen.at(-1).isIntersecting;
      onChange(view);
    },
    { root: scrollerOf(element), rootMargin: around },
  );
  sight.observe(element);
  signal.addEventListener("abort", () => sight.disconnect());
}

export const stopWatchingNear = (view) => view.ending.abort();

/** What scrolls this element; null for the window. A margin counts around this box alone. */
export function scrollerOf(element) {
  for (let box = element.parentElement; box; box = box.parentElement) {
    if (/auto|scroll/.test(getComputedStyle(box).overflowY)) return box;
  }
  return null;
}
