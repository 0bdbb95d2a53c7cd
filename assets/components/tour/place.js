// The element of a step: it is scrolled into view once it exists, and again when the page above it grows.

const EVERY = 150; // ms
const SETTLED = 1500; // ms without a change
const LONGEST = 120000; // ms: a busy server is slow
const TOUCHED = ["pointerdown", "wheel", "keydown", "touchstart"];

const GAP = 8; // px, between the element and the bar

let timer;
let growth; // watches the page once the element has come to rest
let rule; // the style that hides an element

/**
 * Scroll to the element with this key until it stays there, then call `rests`; from then on follow it where the page
 * above it grows late, as on a slow computer. End when the reader acts.
 * Of an element that is higher than the window this part is shown, if one is named.
 */
export function bringIntoSight(key, part, rests) {
  stopBringing();
  const begun = performance.now();
  let lastMove = begun;
  const poll = () => {
    const now = performance.now();
    const place = mark(key);
    if (!place || isRunning() || bring(place, part)) lastMove = now;
    if (now - lastMove < SETTLED && now - begun < LONGEST) timer = setTimeout(poll, EVERY);
    else {
      growth.observe(document.querySelector(".stMainBlockContainer"));
      rests();
    }
  };
  growth = new ResizeObserver(() => {
    const place = mark(key);
    if (place) bring(place, part);
  });
  for (const name of TOUCHED) addEventListener(name, stopBringing, { capture: true, once: true });
  timer = setTimeout(poll);
}

export function stopBringing() {
  clearTimeout(timer);
  growth?.disconnect();
}

/** The element, marked as that of the step; nothing else is. */
export function mark(key) {
  const place = key && document.querySelector(`.stMainBlockContainer .st-key-${CSS.escape(key)}`);
  for (const node of document.querySelectorAll("[data-toured]")) if (node !== place) delete node.dataset.toured;
  if (place) place.dataset.toured = "";
  return place;
}

/** Hide the content of the element with this key, and of no other: by a rule, since Streamlit makes elements anew. */
export function hide(key) {
  rule ??= document.head.appendChild(document.createElement("style"));
  const place = `.st-key-${CSS.escape(key)}`;
  rule.textContent = key && `${place} > * { visibility: hidden; opacity: 0 } ${place} { --tour-question: "?"; position: relative }`;
}

/**
 * Whether it had to be scrolled, unless it is fully visible: to the bottom, so that controls above it are visible too, or
 * to the top where the window is too low for it. While presenting, its figure is shown alone.
 */
function bring(whole, part) {
  if ("presenting" in document.documentElement.dataset) {
    window.dispatchEvent(new CustomEvent("atlas-show", { detail: whole }));
    return false;
  }
  const main = whole.closest('[data-testid="stMain"]');
  if (!main) return false;
  const view = main.getBoundingClientRect();
  const margin = parseFloat(getComputedStyle(whole).scrollMarginTop) || 0;
  const fits = whole.offsetHeight + margin <= view.height;
  const { top, bottom } = ((!fits && partOf(whole, part)) || whole).getBoundingClientRect();
  if (top >= view.top + margin && bottom <= view.bottom) return false;
  const before = main.scrollTop;
  main.scrollTop += Math.min(top - view.top - margin, bottom - view.bottom + GAP);
  return Math.abs(main.scrollTop - before) > 2;
}

/** An element of the component in it, by its data-part. */
const partOf = (whole, part) =>
  part && [...whole.querySelectorAll("*")].map((node) => node.shadowRoot?.querySelector(`[data-part="${CSS.escape(part)}"]`)).find(Boolean);

const isRunning = () => document.querySelector(".stApp")?.dataset.testScriptState === "running";
