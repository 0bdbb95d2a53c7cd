// Whether the page stands still: before its pictures are there, what belongs far below lies within the window.

export const STILL = 120; // ms

let changed = 0;
let watched = null;
const heights = new ResizeObserver(() => (changed = performance.now()));

/** Whether the page has had the same height for a moment, and nothing is on its way to it. */
export function atRest() {
  const page = document.querySelector(".stMainBlockContainer");
  if (page && page !== watched) {
    heights.disconnect();
    heights.observe(page);
    watched = page;
    changed = performance.now();
  }
  return performance.now() - changed >= STILL;
}

/** Whether the server is still running the page. */
export const atWork = () => document.querySelector(".stApp")?.dataset.testScriptState === "running";
