// A mark in a part of the page that waits until it comes near the window (ui/chapter/lazy_parts.py): keeps its place and asks for it.

import { mountView, partsOf } from "../shared/mount.js";
import { FAR, scrollerOf, stopWatchingNear, watchNear } from "../shared/near.js";
import { leaving } from "./leaving.js";
import { atRest, atWork, STILL } from "./rest.js";

const PATIENCE = 2000; // ms: a page that never rests is asked as it is
const AGAIN = 3000; // ms after which a part that did not come is asked for again
const APART = 20; // ms: Streamlit takes what two marks ask at once for the asking of one
const SETTLING = 500; // ms after which what came has its height, whatever is still to come
const LOOK = 50; // ms between two looks at it
const LEAST = 24; // pixels: a part whose picture is not there yet is lower
const READING = 800; // ms after which what is near is taken for what is read

const views = new WeakMap();
const marks = new Set(); // of this page's parts
const heights = new Map(); // of parts as they were last, by name
let page = null; // the mark of the page itself, which tells what is near
let told = []; // what was told last
let toldAtTop = true; // and whether by someone who read the top
let telling;
const waiting = []; // what is to be said to Python

function createView(parent) {
  const view = { parts: partsOf(parent), box: parent.closest('[class*="st-key-part-"]'), path: location.pathname };
  if (!view.box) return view;
  marks.add(view);
  watchNear(view, look, FAR, view.box);
  globalThis.addEventListener("hashchange", () => look(view), { signal: view.ending.signal });
  return view;
}

function closeView(view) {
  clearTimeout(view.timer);
  marks.delete(view);
  if (view === page) page = null;
  if (view.box) stopWatchingNear(view);
}

/** What is near has changed. */
function look(view) {
  if (view.waits) ask(view);
  else remember(view);
  clearTimeout(telling);
  telling = setTimeout(tell, READING);
}

/** Ask for the part if someone is near and it is not here. */
function ask(view) {
  clearTimeout(view.timer);
  const urgent = view.forGood || linkedInto();
  if (!isWanted(view)) {
    view.since = undefined;
    return;
  }
  view.since ??= performance.now();
  const patient = performance.now() - view.since < PATIENCE;
  if (!urgent && patient && !atRest()) {
    view.timer = setTimeout(ask, STILL, view);
    return;
  }
  if (!view.asked || !atWork()) {
    view.asked = true;
    inTurn(() => leaving(view.path) || view.ask([...takeNear(), view.name]));
  }
  view.timer = setTimeout(ask, AGAIN, view);
}

/** Whether the address points at something that is not on the page yet: it may be in any part. */
function linkedInto() {
  const target = location.hash.slice(1);
  return target !== "" && !document.getElementById(decodeURIComponent(target));
}

const isWanted = (view) => !leaving(view.path) && (view.near || linkedInto());

/**
 * When the page changes, what is near is sent at once, and what is far waits again. It makes the server run: not for
 * someone who has come and reads the top, where what is near has been asked for or has come with the page.
 */
function tell() {
  if (!page || leaving(page.path)) return;
  const near = namesNear();
  const known = near.every((name) => told.includes(name));
  if (known && near.length === told.length) return;
  if (atTop() && toldAtTop && (known || !told.length)) return;
  inTurn(() => page?.tell(takeNear()));
}

const atTop = () => page !== null && scrollerOf(page.parts.root)?.scrollTop === 0;

const namesNear = () => [...marks].filter(isWanted).map(({ name }) => name).sort();

function takeNear() {
  told = namesNear();
  toldAtTop = atTop();
  return told;
}

/** One after the other, each once what the last one said is sent. */
function inTurn(say) {
  waiting.push(say);
  if (waiting.length === 1) sayNext();
}

function sayNext() {
  setTimeout(() => {
    waiting.shift();
    if (waiting.length) sayNext();
  }, APART);
  waiting[0]();
}

function wait(view, room) {
  const kept = heights.get(view.name) ?? room;
  view.box.style.minHeight = kept ? `${kept}px` : "";
  view.asked = false;
  ask(view);
}

function arrive(view) {
  clearTimeout(view.timer);
  view.timer = setTimeout(settle, LOOK, view, performance.now(), 0);
}

/** Its place is kept until what came has its height. */
function settle(view, since, before) {
  const height = Math.max(0, ...[...view.box.children].map((child) => child.offsetHeight));
  const there = !atWork() && height >= LEAST && height === before;
  if (!there && performance.now() - since < SETTLING) {
    view.timer = setTimeout(settle, LOOK, view, since, height);
    return;
  }
  view.box.style.minHeight = "";
  remember(view);
}

/** How high it is: by the time that it waits again, it is gone already. */
function remember({ box, name }) {
  if (box.offsetHeight) heights.set(name, box.offsetHeight);
}

export default function (component) {
  const { data, setTriggerValue, setStateValue } = component;
  if (!data) return undefined;
  const { view, unmount } = mountView(views, component, createView, closeView);
  const { name, waits, room } = data;
  if (view.box) {
    Object.assign(view, { name, waits, ask: (near) => setTriggerValue("come", near) });
    if (waits) wait(view, room);
    else arrive(view);
  } else {
    if (page !== view) {
      told = [];
      toldAtTop = true;
    }
    page = view;
    view.tell = (near) => setStateValue("near", near);
  }
  return unmount;
}
