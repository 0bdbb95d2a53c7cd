// What a step is about: it comes into sight once it is there, and stays while the page above it grows.

const EVERY = 150; // ms
const SETTLED = 1500; // ms that it must stand still
const LONGEST = 120000; // ms: a busy server takes its time
const TOUCHED = ["pointerdown", "wheel", "keydown", "touchstart"];

let timer;

/** Scroll to the element with this key, until it rests there, which is told, or the reader moves. */
export function bringIntoSight(key, rests) {
  stopBringing();
  const begun = performance.now();
  let moved = begun;
  const look = () => {
    const now = performance.now();
    const place = mark(key);
    if (!place || isRunning() || bring(place)) moved = now;
    if (now - moved < SETTLED && now - begun < LONGEST) timer = setTimeout(look, EVERY);
    else rests();
  };
  for (const name of TOUCHED) addEventListener(name, stopBringing, { capture: true, once: true });
  timer = setTimeout(look);
}

export function stopBringing() {
  clearTimeout(timer);
}

/** The element, marked as what the step is about; nothing else is. */
export function mark(key) {
  const place = key && document.querySelector(`.stMainBlockContainer .st-key-${CSS.escape(key)}`);
  for (const node of document.querySelectorAll("[data-toured]")) if (node !== place) delete node.dataset.toured;
  if (place) place.dataset.toured = "";
  return place;
}

/** Whether it had to be moved: to the top, unless all of it is to be seen. While presenting, its figure is shown alone. */
function bring(place) {
  if ("presenting" in document.documentElement.dataset) {
    window.dispatchEvent(new CustomEvent("atlas-look", { detail: place }));
    return false;
  }
  const main = place.closest('[data-testid="stMain"]');
  if (!main) return false;
  const sight = main.getBoundingClientRect();
  const { top, bottom } = place.getBoundingClientRect();
  const margin = parseFloat(getComputedStyle(place).scrollMarginTop) || 0;
  if (top >= sight.top + margin && bottom <= sight.bottom) return false;
  const before = main.scrollTop;
  main.scrollTop += top - sight.top - margin;
  return Math.abs(main.scrollTop - before) > 2;
}

const isRunning = () => document.querySelector(".stApp")?.dataset.testScriptState === "running";
