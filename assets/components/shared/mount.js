// From Streamlit's calls to one view that lives as long as its markup.

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
