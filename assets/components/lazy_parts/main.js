// A marker in a part of the page that is not loaded before it is nearly visible (ui/chapter/parts.py): it reserves
// the part's height and requests it.

import { LOAD_MARGIN, partsOf, scrollerOf, stopWatchingVisibility, viewComponent, watchVisibility } from "../shared/mount.js";
import { followBreak } from "../shared/sight.js";

document.addEventListener("click", followBreak, { capture: true }); // here, in a script that every chapter has once

// On the way to another chapter no part of this one is requested: it would be drawn over the next one.

const WAY_OUT = '[data-testid="stPageLink"] a, [data-testid="stSidebarNavLink"]';
const LONGEST = 10000; // ms that a click may take to lead away

let clicked = -Infinity;
let from = "";

document.addEventListener(
  "click",
  (event) => {
    if (!event.target.closest?.(WAY_OUT) || event.ctrlKey || event.metaKey || event.shiftKey) return;
    clicked = performance.now();
    from = location.pathname;
  },
  { capture: true },
);

/** Whether the chapter at this path is being left, or is left already. */
const leaving = (path) =>
  location.pathname !== path || (path === from && performance.now() - clicked < LONGEST);

// Whether the page stands still: before its pictures are there, what belongs far below lies within the window.

const STILL = 120; // ms

let changed = 0;
let watched = null;
const pageHeight = new ResizeObserver(() => (changed = performance.now()));

/** Whether the page has had the same height for a moment, and nothing is on its way to it. */
function atRest() {
  const page = document.querySelector(".stMainBlockContainer");
  if (page && page !== watched) {
    pageHeight.disconnect();
    pageHeight.observe(page);
    watched = page;
    changed = performance.now();
  }
  return performance.now() - changed >= STILL;
}

const atWork = () => document.querySelector(".stApp")?.dataset.testScriptState === "running";

const LONGEST_UNREST = 2000; // ms: on a page that never rests parts are requested all the same
const FIRST_RETRY = 3000; // ms after which a part that did not come is requested again; then twice as long each time
const LONGEST_RETRY = 30000;
const INTERVAL = 20; // ms: Streamlit takes what two markers request at once for a request of one
const SETTLING = 500; // ms after which a part that came has its height, whatever is still to come
const CHECK = 50; // ms between two measurements of its height
const FIGURE = 300; // pixels, from which a part has a figure
const LEAST = 24; // pixels: a part whose picture is not there yet is lower
const READING = 800; // ms after which what is visible is taken for what is read

const markers = new Set(); // of this page's parts
const heights = new Map(); // of parts as they were last, by name
let page = null; // the marker of the page itself, which reports what is visible
let reported = []; // names, in the last report
let reportedAtTop = true; // and whether by someone who read the top
let reporting;
const queue = []; // messages to Python
let sentAt = -Infinity;

function createView(parent) {
  const view = { parts: partsOf(parent), box: parent.closest('[class*="st-key-part-"]'), path: location.pathname };
  if (!view.box) return view;
  markers.add(view);
  watchVisibility(view, onVisibility, LOAD_MARGIN, view.box);
  globalThis.addEventListener("hashchange", () => onVisibility(view), { signal: view.ending.signal });
  return view;
}

function closeView(view) {
  clearTimeout(view.timer);
  markers.delete(view);
  if (view === page) page = null;
  if (view.box) stopWatchingVisibility(view);
}

function onVisibility(view) {
  if (view.pending) request(view);
  else remember(view);
  clearTimeout(reporting);
  reporting = setTimeout(report, READING);
}

/** Request the part if it is nearly visible, and again until it is here: a request may be lost on its way. */
function request(view) {
  clearTimeout(view.timer);
  if (!view.pending || !isWanted(view)) {
    view.since = undefined;
    return;
  }
  const now = performance.now();
  view.since ??= now;
  if (!view.alwaysVisible && !linkedInto() && now - view.since < LONGEST_UNREST && !atRest()) {
    view.timer = setTimeout(request, STILL, view);
    return;
  }
  if (!(view.retryAt > now) && !(view.retry && atWork())) {
    view.retry = Math.min(2 * view.retry || FIRST_RETRY, LONGEST_RETRY);
    view.retryAt = now + view.retry;
    send(() => leaving(view.path) || !view.pending || view.request([...takeVisible(), view.name]));
  }
  view.timer = setTimeout(request, Math.max(view.retryAt - now, STILL), view);
}

/** Whether the address points at something that is not on the page yet: it may be in any part. */
function linkedInto() {
  const target = location.hash.slice(1);
  return target !== "" && !document.getElementById(decodeURIComponent(target));
}

const isWanted = (view) => !leaving(view.path) && (view.visible || linkedInto());

/**
 * When the page changes, what is visible is sent at once, and the other parts wait again. A report makes the server run:
 * there is none from someone who has come and reads the top, where what is visible was requested or came with the page.
 */
function report() {
  if (!page || leaving(page.path)) return;
  const visible = visibleNames();
  const known = visible.every((name) => reported.includes(name));
  if (known && visible.length === reported.length) return;
  if (atTop() && reportedAtTop && (known || !reported.length)) return;
  send(() => page?.report(takeVisible()));
}

const atTop = () => page !== null && scrollerOf(page.parts.root)?.scrollTop === 0;

const visibleNames = () => [...markers].filter(isWanted).map(({ name }) => name).sort();

function takeVisible() {
  reported = visibleNames();
  reportedAtTop = atTop();
  return reported;
}

/** Send a message to Python, once the one before is on its way: Streamlit sends what comes within a moment as one. */
function send(message) {
  queue.push(message);
  sendNext();
}

function sendNext() {
  const wait = sentAt + INTERVAL - performance.now();
  if (wait > 0) {
    setTimeout(sendNext, wait);
    return;
  }
  const message = queue.shift();
  if (!message) return;
  sentAt = performance.now();
  if (queue.length) setTimeout(sendNext, INTERVAL);
  message();
}

function wait(view, height) {
  const last = heights.get(view.name) ?? height;
  view.box.style.minHeight = last ? `${last}px` : "";
  view.retry = view.retryAt = 0;
  request(view);
}

function arrive(view) {
  clearTimeout(view.timer);
  view.timer = setTimeout(settle, CHECK, view, performance.now(), 0);
}

/** Reserve its height until what came has its own. */
function settle(view, since, before) {
  const height = Math.max(0, ...[...view.box.children].map((child) => child.offsetHeight));
  const there = !atWork() && height >= LEAST && height === before;
  if (!there && performance.now() - since < SETTLING) {
    view.timer = setTimeout(settle, CHECK, view, since, height);
    return;
  }
  view.box.style.minHeight = "";
  remember(view);
}

/** Remember its height: by the time that it waits again, it is gone already. */
function remember({ box, name }) {
  if (box.offsetHeight) heights.set(name, box.offsetHeight);
}

export default viewComponent(createView, (view, data, { setTriggerValue, setStateValue }) => {
  const { name, pending, height } = data;
  if (view.box) {
    Object.assign(view, { name, pending, request: (visible) => setTriggerValue("request", visible) });
    if (height >= FIGURE) view.box.dataset.figure = pending ? "pending" : "here"; // who presents the page counts it
    if (pending) wait(view, height);
    else arrive(view);
  } else {
    if (page !== view) {
      reported = [];
      reportedAtTop = true;
    }
    page = view;
    view.report = (visible) => setStateValue("visible", visible);
  }
}, closeView);
