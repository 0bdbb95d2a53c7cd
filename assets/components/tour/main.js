// The guided tour: a bar at the bottom of the window leads from chapter to chapter (ui/chapter/tour.py). At each step it
// asks first: what the question is about is hidden until the reader has guessed or asked to see it. Guesses are kept in
// memory until the tour is left.
//
// Each step is a URL. It is opened as by the Back button: Streamlit opens its chapter, and every control takes its value
// from the URL. So Back goes through the steps, and a step can be shared.

import { mountView, partsOf } from "../shared/mount.js";
import { makeBar } from "./bar.js";
import { bringIntoSight, hide, mark, stopBringing } from "./place.js";

const PARAMETER = "tour";
const WINDOW_PARAMETERS = ["embed", "embed_options", "lang", "present"]; // of this window, not of the step
const MOST_TRIES = 3;
const TYPED_IN = "input, textarea, select, [contenteditable], [role=textbox], [role=combobox], [role=dialog], [role=listbox], [role=application]";

const views = new WeakMap();
let tour = null; // the last data from Python
let bar = null; // while on the tour
let shown = 0; // the step that is shown
let tries = 0; // to set its state again
const guesses = new Map(); // by the number of the step

/** A step's URL; for others without the parameters of this window. */
function toAddress(link, forOthers = false) {
  const there = new URL(link, document.baseURI);
  const here = new URL(window.location.href);
  for (const name of forOthers ? [] : WINDOW_PARAMETERS) {
    for (const value of here.searchParams.getAll(name)) there.searchParams.append(name, value);
  }
  return there.href;
}

/** The number of the step that the URL requests, if it is known; else 0. */
function requestedStep() {
  const here = new URL(window.location.href);
  const number = Number(here.searchParams.get(PARAMETER));
  const step = tour?.steps[number - 1];
  return step && new URL(step.link, document.baseURI).pathname === here.pathname ? number : 0;
}

function go(href) {
  history.pushState(history.state, "", href);
  window.dispatchEvent(new PopStateEvent("popstate", { state: history.state }));
  bar?.focus();
}

/** Show the step to a reader who chose this answer, or none (-1). */
function reveal(answer) {
  guesses.set(requestedStep(), answer);
  shown = 0;
  render();
}

/** The page stays as it is, and Back returns to the step. */
function leave() {
  const here = new URL(window.location.href);
  here.searchParams.delete(PARAMETER);
  history.pushState(history.state, "", here);
  render();
}

/** Show the requested step. */
function render() {
  const number = requestedStep();
  if (!number) return close();
  const fresh = !bar;
  if (fresh) open();
  const isOpen = !guesses.has(number);
  bar.show(number, tour, toAddress, guesses.get(number));
  if (fresh && document.activeElement === document.body) bar.focus();
  writeHeight();
  const { chapter, place, part } = tour.steps[number - 1];
  hide(isOpen ? place : "");
  if (chapter !== tour.chapter) shown = 0; // its page is loading
  else if (shown !== number) {
    [shown, tries] = [number, 0];
    bringIntoSight(place, part, insist);
  }
}

/**
 * A run of the page that began before the step may restore a control's former value and undo the step's state. The
 * reader has not acted since, so set it again.
 */
function insist() {
  const step = tour?.steps[requestedStep() - 1];
  if (!step || tries === MOST_TRIES || stateOf(window.location.href) === stateOf(toAddress(step.link))) return;
  tries += 1;
  history.replaceState(history.state, "", toAddress(step.link));
  window.dispatchEvent(new PopStateEvent("popstate", { state: history.state }));
  bringIntoSight(step.place, step.part, insist);
}

/** The page state in a URL, in a canonical order. */
function stateOf(href) {
  const parameters = [...new URL(href).searchParams].filter(([name]) => !WINDOW_PARAMETERS.includes(name));
  return JSON.stringify(parameters.sort());
}

function open() {
  bar = makeBar(go, leave, reveal);
  document.querySelector(".stApp").append(bar.root);
  bar.watch = new ResizeObserver(writeHeight);
  bar.watch.observe(bar.root);
  document.documentElement.dataset.touring = "";
}

/** Let the page end where the bar begins, so that it covers nothing. */
function writeHeight() {
  document.documentElement.style.setProperty("--tour-height", `${bar.root.offsetHeight}px`);
}

function close() {
  shown = 0;
  if (!bar) return;
  bar.watch.disconnect();
  bar.root.remove();
  bar = null;
  guesses.clear();
  stopBringing();
  mark("");
  hide("");
  delete document.documentElement.dataset.touring;
}

function pressed(event) {
  if (event.key !== "Escape" || !bar || event.defaultPrevented) return;
  if ("presenting" in document.documentElement.dataset) return; // Escape ends that first
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
    () => requestedStep() || close(),
  );
  tour = JSON.parse(new TextDecoder().decode(data));
  const { root } = view.parts;
  root.textContent = tour.words.start;
  root.href = toAddress(tour.steps[0].link);
  render();
  return unmount;
}
