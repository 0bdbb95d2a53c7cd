// A figure that fills the window while someone presents (assets/components/present).

const AROUND = 90; // pixels: the page's own edge, and the line under the figure
const LEAST = 240; // pixels: a window lower than that scrolls
const BESIDE = 16; // pixels between it and a text that is shown with it

/** How high it may be there, in pixels; null where it stands among others in its chapter. */
export function stageHeight(root) {
  const host = root.getRootNode().host ?? root;
  if (!host.closest('[data-presented="figure"]')) return null;
  const main = host.closest('[data-testid="stMain"]'); // lower than the window on a tour
  const texts = document.querySelectorAll(':is([data-presented="caption"], [data-presented="question"])');
  const taken = [...texts].reduce((sum, text) => sum + text.offsetHeight + BESIDE, 0);
  return Math.max((main?.clientHeight ?? window.innerHeight) - AROUND - taken, LEAST);
}

/** How many times larger than usual the page's type is, at least 1: what is drawn on a canvas keeps pace. */
export const typeScale = () => Math.max(1, parseFloat(getComputedStyle(document.documentElement).fontSize) / 16);
