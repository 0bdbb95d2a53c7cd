// The element of a step: it is scrolled into view once it exists, and again when the page above it grows. While the tour
// asks, what answers the question is hidden in it.

import { element } from "../shared/elements.js";
import { followGrowth, untilReaderActs } from "../shared/sight.js";

const EVERY = 150; // ms
const SETTLED = 1500; // ms without a change
const LONGEST = 120000; // ms: a busy server is slow
const GAP = 8; // px, between the element and the bar

const HIDDEN = "visibility: hidden !important; opacity: 0 !important"; // what is in it may be visible by itself
const CAPTIONS = '[data-testid="stCaptionContainer"]';
const hidden = { key: "", parts: [], timer: 0 }; // what is hidden now

/**
 * Scroll to the element with this key until it stays there, then call `rests`; from then on follow it where the page
 * above it grows late, as on a slow computer. End when the reader acts.
 * Of an element that is higher than the window this part is shown, if one is named.
 */
export function bringIntoSight(key, part, rests) {
  const signal = untilReaderActs();
  const begun = performance.now();
  let lastMove = begun;
  const seek = (place) => !place || bring(place, part);
  const poll = () => {
    if (signal.aborted) return;
    const now = performance.now();
    const place = mark(key);
    if (isRunning() || seek(place)) lastMove = now;
    if (now - lastMove < SETTLED && now - begun < LONGEST) setTimeout(poll, EVERY);
    else {
      followGrowth(() => seek(mark(key)), signal);
      rests();
    }
  };
  setTimeout(poll);
}

/** The element, marked as that of the step; nothing else is. */
export function mark(key) {
  const place = key && placeOf(key);
  for (const node of document.querySelectorAll("[data-toured]")) if (node !== place) delete node.dataset.toured;
  if (place) place.dataset.toured = "";
  return place;
}

/**
 * Hide these parts, CSS selectors, of the element with this key, or all of it where none is named; of no other. Hide
 * `also` what else on the page answers the question: these selectors, and every caption, since it describes a figure.
 * By rules, since Streamlit makes elements anew; those in components come late, each with a tree of its own.
 */
export function hide(key, parts = [], also = []) {
  clearInterval(hidden.timer);
  const before = hidden.key && placeOf(hidden.key);
  if (before) before.inert = false;
  document.querySelector("style.tour-hides")?.remove();
  for (const root of before ? rootsIn(before) : []) root.querySelector("style.tour-hides")?.remove();
  Object.assign(hidden, { key, parts });
  if (!key) return;
  const place = `.st-key-${CSS.escape(key)}`;
  const named = parts.map((part) => `${place} :is(${part}, ${part} *)`).join(", ") || `${place} > *`;
  const outside = [CAPTIONS, ...also].map((part) => `.stMainBlockContainer :is(${part}, ${part} *)`).join(", ");
  document.head.append(element("style", "tour-hides", {}, `${named}, ${outside} { ${HIDDEN} } ${place} { --tour-question: "?"; position: relative }`));
  hideInside();
  hidden.timer = setInterval(hideInside, EVERY);
}

/** Nothing in it can be pointed at, or read aloud: labels say what is hidden. */
function hideInside() {
  const place = placeOf(hidden.key);
  if (!place) return;
  place.inert = true;
  for (const root of hidden.parts.length ? rootsIn(place) : []) {
    if (!root.querySelector("style.tour-hides")) root.append(element("style", "tour-hides", {}, `${hidden.parts.join(", ")} { ${HIDDEN} }`));
  }
}

const placeOf = (key) => document.querySelector(`.stMainBlockContainer .st-key-${CSS.escape(key)}`);
const rootsIn = (place) => [...place.querySelectorAll("*")].map((node) => node.shadowRoot).filter(Boolean);

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

const partOf = (whole, part) =>
  part && rootsIn(whole).map((root) => root.querySelector(`[data-part="${CSS.escape(part)}"]`)).find(Boolean);

const isRunning = () => document.querySelector(".stApp")?.dataset.testScriptState === "running";
