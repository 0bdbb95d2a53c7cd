// Scrolling to what the reader has asked for, also where the page is still growing.

import { scrollerOf } from "./mount.js";

const HEADER = 60; // px of Streamlit's header
const QUESTION = 90; // px above a figure that is asked about
const CLEAR_BELOW = 60;
const SETTLED = 300; // ms in which the page's height no longer changes
const TOUCHED = ["wheel", "touchmove", "pointerdown", "keydown"]; // by a reader
let following = new AbortController();

/** Pixels above what is in sight: the header and, on a phone, the controls that stay in reach. */
function clearAbove() {
  const controls = document.querySelector('[data-testid="stLayoutWrapper"]:has(> .st-key-main-controls)');
  const isSticky = controls && getComputedStyle(controls).position === "sticky";
  return HEADER + (isSticky ? controls.offsetHeight : 0);
}

const scrollingOf = () => (matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth");

/**
 * Scroll what scrolls this element until a place, from top to bottom in the window, is in sight; again where the page
 * changes its height late, as on a slow computer, until the reader acts.
 */
export function bringIntoSight(element, top, bottom) {
  const scroller = scrollerOf(element);
  if (!scroller) return;
  const from = element.getBoundingClientRect().top;
  const seek = () => {
    const change = element.getBoundingClientRect().top - from;
    const [high, low, clear] = [top + change, bottom + change, clearAbove() + QUESTION];
    if (!element.isConnected || (high >= clear && low <= innerHeight - CLEAR_BELOW)) return;
    scroller.scrollBy({ top: Math.min(high - clear, (high + low - innerHeight) / 2), behavior: scrollingOf() });
  };
  seek();
  const signal = untilReaderActs();
  followGrowth(onceAtRest(seek, signal), signal);
}

const isRunning = () => document.querySelector(".stApp")?.dataset.testScriptState === "running";

/** Call `seek` once the page has run and kept its height for a moment, if the reader has not acted by then. */
function onceAtRest(seek, signal) {
  let timer;
  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(() => signal.aborted || (isRunning() ? wait() : seek()), SETTLED);
  };
  return wait;
}

/** A signal to end scrolling to something: when the reader acts, or something else is scrolled to. */
export function untilReaderActs() {
  stopFollowing();
  following = new AbortController();
  for (const name of TOUCHED) addEventListener(name, stopFollowing, { capture: true, signal: following.signal });
  return following.signal;
}

export const stopFollowing = () => following.abort();

/** Call `seek` now and where the page changes its height, until the signal. */
export function followGrowth(seek, signal) {
  const height = new ResizeObserver(seek);
  height.observe(document.querySelector(".stMainBlockContainer"));
  signal.addEventListener("abort", () => height.disconnect());
}

const BREAKS = "st-key-breaks-";
const PARTS = '[class*="st-key-section-"], .stMainBlockContainer'; // around a choice that is in no card

/**
 * Who breaks a figure sees what that does: the choice stays where it was pressed while the figure grows, and then both
 * are in sight; where half of a broken figure above the choice would not be, the figure alone.
 */
export function followBreak({ target }) {
  const choice = target.closest?.(`[class*="${BREAKS}"]`);
  const scroller = choice && target.closest("button") && scrollerOf(choice);
  if (!scroller) return;
  const name = [...choice.classList].find((each) => each.startsWith(BREAKS));
  const card = document.querySelector(`.${CSS.escape(name.replace("breaks", "card"))}`);
  const signal = untilReaderActs();
  const pressed = choice.getBoundingClientRect().top;
  let isPinned = true;
  const seek = onceAtRest(() => {
    isPinned = false;
    const broken = [...(card ?? choice.closest(PARTS)).querySelectorAll(".st-key-broken-checks, .st-key-broken")];
    const [claims, figure] = (broken.length ? broken : [card ?? choice]).map((each) => each.getBoundingClientRect());
    const change = changeTo(claims.top, figure, choice.getBoundingClientRect());
    if (change) scroller.scrollBy({ top: change, behavior: scrollingOf() });
  }, signal);
  followGrowth(() => {
    if (isPinned) scroller.scrollBy({ top: choice.getBoundingClientRect().top - pressed, behavior: "auto" });
    seek();
  }, signal);
}

/** Pixels to scroll to a broken figure, if there is one, what is claimed from this top on, and the choice. */
function changeTo(top, figure, choice) {
  const [clear, lowest] = [clearAbove(), innerHeight - CLEAR_BELOW];
  if (figure && choice.top < top) return Math.min(Math.max(figure.bottom - lowest, 0), choice.top - clear);
  const change = Math.max(Math.min(top - clear, 0), choice.bottom - lowest);
  const isSeen = !figure || figure.bottom - change - Math.max(figure.top - change, clear) >= figure.height / 2;
  return isSeen ? change : top - clear;
}
