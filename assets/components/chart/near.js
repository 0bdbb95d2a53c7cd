// What is near the window: all else may wait.

const AROUND = "50% 0px"; // half a window above and below

/** Keep `view.near` true while the view lies near the window, or for good once the page is printed. */
export function watchNear(view, onNear) {
  const come = () => {
    view.near = true;
    onNear(view);
  };
  view.ending = new AbortController();
  const { signal } = view.ending;
  globalThis.addEventListener("beforeprint", come, { signal });
  matchMedia("print").addEventListener("change", ({ matches }) => matches && come(), { signal });
  view.near = !globalThis.IntersectionObserver;
  if (view.near) return;
  const { root } = view.parts;
  const sight = new IntersectionObserver(
    (seen) => {
      view.near = seen.at(-1).isIntersecting;
      if (view.near) onNear(view);
    },
    { root: scrollerOf(root), rootMargin: AROUND },
  );
  sight.observe(root);
  signal.addEventListener("abort", () => sight.disconnect());
}

export const stopWatchingNear = (view) => view.ending.abort();

/** What scrolls this element; null for the window. A margin counts around this box alone. */
function scrollerOf(element) {
  for (let box = element.parentElement; box; box = box.parentElement) {
    if (/auto|scroll/.test(getComputedStyle(box).overflowY)) return box;
  }
  return null;
}
