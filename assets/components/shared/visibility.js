// Whether an element is visible, or nearly: all else may wait.

/** Margins above and below the window: for what the server has still to send, and for what is only drawn. */
export const LOAD_MARGIN = "50% 0px";
export const DRAW_MARGIN = "25% 0px";

/** Keep `view.visible` true while an element is within the margin, or for good once the page is printed. */
export function watchVisibility(view, onChange, margin, element = view.parts.root) {
  const print = () => {
    view.visible = true;
    view.alwaysVisible = true;
    onChange(view);
  };
  view.ending = new AbortController();
  const { signal } = view.ending;
  globalThis.addEventListener("beforeprint", print, { signal });
  matchMedia("print").addEventListener("change", ({ matches }) => matches && print(), { signal });
  view.alwaysVisible = !globalThis.IntersectionObserver || matchMedia("print").matches;
  view.visible = view.alwaysVisible;
  if (view.visible) return;
  const observer = new IntersectionObserver(
    (entries) => {
      view.visible = view.alwaysVisible || entries.at(-1).isIntersecting;
      onChange(view);
    },
    { root: scrollerOf(element), rootMargin: margin },
  );
  observer.observe(element);
  signal.addEventListener("abort", () => observer.disconnect());
}

export const stopWatchingVisibility = (view) => view.ending.abort();

/** The element that scrolls this one; null for the window. A margin counts around this box alone. */
export function scrollerOf(element) {
  for (let box = element.parentElement; box; box = box.parentElement) {
    if (/auto|scroll/.test(getComputedStyle(box).overflowY)) return box;
  }
  return null;
}
