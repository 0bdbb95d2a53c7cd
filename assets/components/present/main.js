// Presenting: the chapter's figures and questions fill the window one after another, large enough for a projector.
//
// No figure moves: the style sheet hides everything beside it and its containers. So it keeps its
// state, and a lazy one (ui/chapter/lazy_parts.py) is loaded when it is shown, as when it is scrolled to.

import { mountView, partsOf } from "../shared/mount.js";
import { makeBar } from "./bar.js";
import { figureAt, figureLike, figureNamed, figuresOf, hideAll, markAlone, middleOne, pageOf, presented, sentence, showAlone } from "./figures.js";

const PARAMETER = "present";
const STEPS = { ArrowRight: 1, ArrowDown: 1, PageDown: 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1 };
const TYPED_IN = "textarea, select, [contenteditable], [role=textbox], [role=combobox], [role=dialog], input:not([type=radio], [type=checkbox], [type=range])";

const views = new WeakMap();
let words = null;
let bar = null; // while presenting
// Whether the URL names another chapter than the one whose parts are there, which Streamlit is about to replace.
const hasLeft = () => window.location.pathname.split("/").findLast(Boolean) !== words.chapter;
let watch = null;
let follows = false; // whether it shows what the URL names, also if that is drawn after others, until somebody goes on

// "1" begins with the first figure, the name of a figure or question with that one: ?present=exercise-bag
const requested = () => new URL(window.location.href).searchParams.get(PARAMETER);

/** Keep the URL up to date: a copied link opens in presentation. */
function writeUrl(on) {
  const url = new URL(window.location.href);
  if (on) url.searchParams.set(PARAMETER, requested() ?? "1");
  else url.searchParams.delete(PARAMETER);
  if (url.href !== window.location.href) history.replaceState(history.state, "", url);
}

/** Start with this figure, or with the one that the URL names, once it exists. */
function begin(figure) {
  if (bar || hasLeft()) return;
  follows = !figure;
  document.activeElement?.blur();
  document.documentElement.dataset.presenting = "";
  bar = makeBar(words, { go, end });
  document.querySelector(".stApp").append(bar.root);
  writeUrl(true);
  openSections();
  watch = new MutationObserver(() => (presented() ? updateBarSoon() : show(figureLike())));
  watch.observe(document.querySelector(".stApp"), { childList: true, subtree: true });
  show(figure ?? figureNamed(requested()));
}

function end() {
  if (!bar) return;
  const figure = presented();
  watch.disconnect();
  bar.root.remove();
  bar = null;
  delete document.documentElement.dataset.presenting;
  hideAll();
  if (!hasLeft()) writeUrl(false);
  figure?.scrollIntoView({ block: "center" });
}

function show(figure) {
  if (!figure) return;
  showAlone(figure);
  updateBar(figure);
}

/**
 * Open the chapter's optional sections: all its figures are presented, also those that nobody has opened yet.
 * A link may begin before their switch exists, or before it takes a click: it is tried again when the page changes.
 */
function openSections() {
  const box = document.querySelector(".st-key-open-all input");
  if (box && !box.checked && !hasLeft()) box.click();
}

let updates = false;

/** Update the numbers in the toolbar once the page has settled: sections that open add figures. */
function updateBarSoon() {
  if (updates) return;
  updates = true;
  setTimeout(() => {
    updates = false;
    if (!bar || !presented()) return;
    openSections();
    const figures = figuresOf();
    const shown = presented();
    if (follows) show(figureNamed(requested()));
    else if (figures.includes(shown)) updateBar(shown);
    else show(figures.find((each) => shown.contains(each))); // what came in its place
  }, 200);
}

function updateBar(figure) {
  const figures = figuresOf();
  markAlone(figure);
  const chapter = pageOf().querySelector("h1")?.textContent ?? "";
  bar.update(figures.indexOf(figure) + 1, figures.length, chapter, sentence());
}

function showElement(place) {
  follows = false;
  const figure = figureAt(place);
  if (figure !== presented()) show(figure);
}

/** Go to the next or the previous figure, if there is one. */
function go(step) {
  follows = false;
  const figures = figuresOf();
  const place = figures.indexOf(presented()) + step;
  if (figures[place]) show(figures[place]);
}

function pressed(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !words) return;
  if (event.composedPath().some((node) => node instanceof Element && node.matches(TYPED_IN))) return;
  const { key } = event;
  if (key === "p" && bar) end();
  else if (key === "p" && figuresOf().length) begin(middleOne());
  else if (bar && key === "Escape") end();
  else if (bar && STEPS[key]) go(STEPS[key]);
  else return;
  event.preventDefault();
}

/** An answer that was clicked gives the arrow keys back. */
const leaveAnswer = ({ target }) => bar && target.closest?.('[role="radiogroup"]') && setTimeout(() => document.activeElement?.blur());

window.addEventListener("keydown", pressed);
window.addEventListener("click", leaveAnswer);
window.addEventListener("atlas-show", ({ detail }) => bar && showElement(detail)); // the tour shows the element of its step
window.addEventListener("popstate", () => bar && (!requested() || hasLeft()) && end());

export default function (component) {
  const { data } = component;
  if (!data) return undefined;
  const { view, unmount } = mountView(
    views,
    component,
    (parent) => {
      const parts = partsOf(parent);
      parts.root.addEventListener("click", () => begin(middleOne()));
      return { parts };
    },
    () => hasLeft() && end(),
  );
  words = JSON.parse(new TextDecoder().decode(data));
  view.parts.start.textContent = words.start;
  if (requested()) begin();
  return unmount;
}
