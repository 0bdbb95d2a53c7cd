// From Streamlit's calls to one view that lives as long as its markup, draws what Python sent as one run of bytes
// (viz_core/view/components.py), and may wait until it is visible.

/** The elements of a component that its scripts name, by their data-part. */
export function partsOf(parent) {
  const parts = {};
  for (const node of parent.querySelectorAll("[data-part]")) parts[node.dataset.part] = node;
  return parts;
}

/** Draw a view again when its width has changed, at most once a frame. */
export function watchWidth(view, render) {
  const { root } = view.parts;
  view.observer = new ResizeObserver(() => {
    cancelAnimationFrame(view.frame);
    view.frame = requestAnimationFrame(() => {
      if (root.clientWidth !== view.width) render(view);
    });
  });
  view.observer.observe(root);
}

export function stopWatching(view) {
  view.observer.disconnect();
  cancelAnimationFrame(view.frame);
}

/**
 * The view that draws in this component, made by `create` once for its markup and ended by `close`.
 * Streamlit ends a call it no longer needs as soon as that call answers, which may be after the next has begun:
 * only the latest call ends the view.
 */
export function mountView(views, { parentElement }, create, close) {
  let view = views.get(parentElement);
  // Streamlit may have put fresh markup in place of the one this view was built on.
  if (!view || !parentElement.contains(view.parts.root)) {
    if (view) close(view);
    view = create(parentElement);
    views.set(parentElement, view);
  }
  const call = (view.latestCall = Symbol("call"));
  const unmount = () => {
    if (view.latestCall !== call || views.get(parentElement) !== view) return;
    close(view);
    views.delete(parentElement);
  };
  return { view, unmount };
}

/**
 * What a component exports: a function that takes what Streamlit gives it to one view, made by `create`, ended by `close`;
 * `receive` is called with the view, the data and all else that Streamlit gives.
 */
export function viewComponent(create, receive, close = (_view) => {}) {
  const views = new WeakMap();
  return (component) => {
    if (!component.data) return undefined;
    const { view, unmount } = mountView(views, component, create, close);
    receive(view, component.data, component);
    return unmount;
  };
}

export const readJson = (data) => JSON.parse(new TextDecoder().decode(data));

/** The header, and a buffer of our own in which the sections it names begin at `start`; a header with its arrays as it is. */
export function readFrame(bytes) {
  if (bytes.header) return bytes;
  // A copy: the message it came in may start at an address where no float can.
  const { buffer } = bytes.slice();
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  return { header, buffer, start: 4 + length };
}

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
