// A figure that fills the window while someone presents (assets/components/present).

const AROUND = 90; // pixels: the page's own edge, and the line under the figure

/** How high it may be there, in pixels; null where it stands among others in its chapter. */
export function stageHeight(root) {
  const host = root.getRootNode().host ?? root;
  if (!host.closest('[data-presented="figure"]')) return null;
  return (host.closest('[data-testid="stMain"]')?.clientHeight ?? window.innerHeight) - AROUND; // less than the window on a tour
}

/** How many times larger than usual the page's type is, at least 1: what is drawn on a canvas keeps pace. */
export const typeScale = () => Math.max(1, parseFloat(getComputedStyle(document.documentElement).fontSize) / 16);
