// The guided tour: a bar at the foot of the window leads from chapter to chapter (ui/chapter/tour.py).
//
// Each step is an address. Going to one is what the Back button does: Streamlit opens its chapter, and every control takes
// what the address says. So Back goes through the steps, and a step can be sent to somebody.

import { mountView, partsOf } from "../shared/mount.js";
import { makeBar } from "./bar.js";
import { bringIntoSight, mark, stopBringing } from "./place.js";

const PARAMETER = "tour";
const KEPT = ["embed", "embed_options", "lang", "present"]; // of whoever shows the page, not of the step
const MOST_TRIES = 3;
const TYPED_IN = "input, textarea, select, [contenteditable], [role=textbox], [role=combobox], [role=dialog], [role=listbox], [role=application]";

const views = new WeakMap();
let told = null; // what Python told last
let bar = null; // while on the tour
let seen = 0; // the step that is shown
let tries = 0; // to have it as it is set

/** A step's address; for somebody else without what belongs to this window. */
function toAddress(link, forOthers = false) {
  const there = new URL(link, document.baseURI);
  const here = new URL(window.location.href);
  for (const name of forOthers ? [] : KEPT) {
    for (const value of here.searchParams.getAll(name)) there.searchParams.append(name, value);
  }
  return there.href;
}

/** The number of the step that the address asks for, once it is one that is known; else 0. */
function asked() {
  const here = new URL(window.location.href);
  const number = Number(here.searchParams.get(PARAMETER));
  const step = told?.steps[number - 1];
  return step && new URL(step.link, document.baseURI).pathname === here.pathname ? number : 0;
}

function go(href) {
  history.pushState(history.state, "", href);
  window.dispatchEvent(new PopStateEvent("popstate", { state: history.state }));
}

/** The page stays as it is, and Back returns to the step. */
function leave() {
  const here = new URL(window.location.href);
  here.searchParams.delete(PARAMETER);
  history.pushState(history.state, "", here);
  render();
}

/** Show what the address asks for. */
function render() {
  const number = asked();
  if (!number) return close();
  const fresh = !bar;
  if (fresh) open();
  bar.show(number, told, toAddress);
  if (fresh && document.activeElement === document.body) bar.focus();
  tellHeight();
  const { chapter, place } = told.steps[number - 1];
  if (chapter !== told.chapter) seen = 0; // it is on its way
  else if (seen !== number) {
    [seen, tries] = [number, 0];
    bringIntoSight(place, insist);
  }
}

/**
 * A run of the page that answers something else may still say what a control held before the step, and undo the step's
 * state. Nobody has moved since: so it is set again.
 */
function insist() {
  const step = told?.steps[asked() - 1];
  if (!step || tries === MOST_TRIES || stateOf(window.location.href) === stateOf(toAddress(step.link))) return;
  tries += 1;
  history.replaceState(history.state, "", toAddress(step.link));
  window.dispatchEvent(new PopStateEvent("popstate", { state: history.state }));
  bringIntoSight(step.place, insist);
}

/** What an address says of the page, in an order of its own. */
function stateOf(href) {
  const said = [...new URL(href).searchParams].filter(([name]) => !KEPT.includes(name));
  return JSON.stringify(said.sort());
}

function open() {
  bar = makeBar(go, leave);
  document.querySelector(".stApp").append(bar.root);
  bar.watch = new ResizeObserver(tellHeight);
  bar.watch.observe(bar.root);
  document.documentElement.dataset.touring = "";
}

/** The page ends where the bar begins: nothing lies under it. */
function tellHeight() {
  document.documentElement.style.setProperty("--tour-height", `${bar.root.offsetHeight}px`);
}

function close() {
  seen = 0;
  if (!bar) return;
  bar.watch.disconnect();
  bar.root.remove();
  bar = null;
  stopBringing();
  mark("");
  delete document.documentElement.dataset.touring;
}

function pressed(event) {
  if (event.key !== "Escape" || !bar || event.defaultPrevented) return;
  if ("presenting" in document.documentElement.dataset) return; // it ends that first
  if (event.composedPath().some((node) => node instanceof Element && node.matches(TYPED_IN))) return;
  event.preventDefault();
  leave();
}

window.addEventListener("keydown", pressed);
window.addEventListener("popstate", render);

export default function (component) {
  const { data } = component;
  if (!data) return undefined;
  const { view, unmount } = mountView(
    views,
    component,
    (parent) => {
      const parts = partsOf(parent);
      parts.root.addEventListener("click", (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        go(parts.root.href);
      });
      return { parts };
    },
    () => asked() || close(),
  );
  told = JSON.parse(new TextDecoder().decode(data));
  const { root } = view.parts;
  root.textContent = told.words.start;
  root.href = toAddress(told.steps[0].link);
  render();
  return unmount;
}
