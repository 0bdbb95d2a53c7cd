// Presenting: the chapter's figures and questions fill the window one after another, large enough for a projector.
//
// No figure moves: the style sheet hides everything beside it and its containers. So it keeps its
// state, and a lazy one (ui/chapter/parts.py) is loaded when it is shown, as when it is scrolled to.

import { button, element, fillIn } from "../shared/elements.js";
import { partsOf, readJson, viewComponent } from "../shared/mount.js";

// The toolbar below a figure that fills the window: its input and number, the way to the others, and the end.

function makeBar(words, { go, end }) {
  const sign = (text, label, click) => button("", text, click, { "aria-label": label, title: label });
  const title = element("span", "present-title");
  const place = element("span", "present-place", { "aria-live": "polite" });
  const ways = [sign("←", words.previous, () => go(-1)), place, sign("→", words.next, () => go(1)), sign("✕", words.end, end)];
  const root = element("div", "present-bar", { role: "toolbar", "aria-label": words.start }, title, ...ways);
  const update = (number, count, chapter, sentence) => {
    title.textContent = [chapter, sentence].filter(Boolean).join(" · ");
    place.textContent = fillIn(words.place, { place: number, count });
  };
  return { root, update };
}

// A chapter's figures and questions, and one of them alone, with what is said about it.

const NAMED =
  '[class*="st-key-part-"]:is([class*="-figure-"], [class*="-heatmap-"]), [class*="st-key-figure-"], [class*="st-key-heatmap-"], [class*="st-key-exercise-"], .st-key-maps, .st-key-maps2';
// A high part of the page is one until it is here, and then the figures in it are; a film of images, say, has no name.
const FIGURES = `${NAMED}, [data-figure="pending"], [data-figure="here"]:not(:has(${NAMED}))`;
const TYPED = ':is([class*="-text"], [class*="-start"], [class*="-sentence"])';
const CAPTION = '[data-testid="stCaptionContainer"]';

let last = ""; // key of the figure that was shown last

const pageOf = () => document.querySelector(".stMainBlockContainer");

const marked = (kind) => document.querySelector(`[data-presented="${kind}"]`);

const presented = () => marked("question") ?? marked("figure");

const keyOf = (figure) => [...figure.classList].find((name) => name.startsWith("st-key-")) ?? "";

/** Figures and questions in reading order, without those of closed expanders; for a lazy figure, its placeholder. */
function figuresOf() {
  const found = [...(pageOf()?.querySelectorAll(FIGURES) ?? [])].filter((each) => !each.parentElement.closest(FIGURES));
  const shown = presented();
  hideAll();
  const visible = found.filter((each) => each.getClientRects().length);
  if (shown) markAlone(shown);
  return visible;
}

/** The figure that was shown last, if the page has been drawn again; else the first. */
function figureLike() {
  const figures = figuresOf();
  return figures.find((each) => keyOf(each) === last) ?? figures[0];
}

/** The figure that this element is, contains or is inside of. */
const figureAt = (element) => figuresOf().find((each) => each.contains(element) || element.contains(each));

/**
 * The figure or question of this name ("figure-weights", "exercise-bag", "maps"), also in a section, or the first of a lazy
 * part of this name, drawn or not; else the first of all.
 */
function figureNamed(name) {
  const figures = figuresOf();
  const part = `[class*="st-key-part-"][class*="-${CSS.escape(name)} "], [class*="st-key-part-"][class$="-${CSS.escape(name)}"]`;
  const isNamed = (node) => [...node.classList].some((each) => each === `st-key-${name}` || (each.startsWith("st-key-part-") && each.endsWith(`-${name}`)));
  const holds = (each) => isNamed(each) || [...each.querySelectorAll('[class*="st-key-"]')].some(isNamed);
  return figures.find(holds) ?? figures.find((each) => each.closest(part)) ?? figures[0];
}

function middleOne() {
  const away = (figure) => {
    const { top, bottom } = figure.getBoundingClientRect();
    return Math.abs((top + bottom - window.innerHeight) / 2);
  };
  return figuresOf().reduce((best, each) => (best && away(best) <= away(each) ? best : each), undefined);
}

function showAlone(figure) {
  hideAll();
  markAlone(figure);
  last = keyOf(figure);
  figure.closest('[data-testid="stMain"]')?.scrollTo(0, 0);
}

function hideAll() {
  for (const node of document.querySelectorAll("[data-presented]")) delete node.dataset.presented;
}

const isExercise = (figure) => keyOf(figure).startsWith("st-key-exercise-");

/** Mark it, what is said about it or drawn on it, and all that contains these; again where the page was drawn anew. */
function markAlone(figure) {
  for (const caption of captionsOf(figure)) caption.dataset.presented = "caption";
  mark(figure, isExercise(figure) ? "question" : "figure");
  const board = isExercise(figure) && figure.querySelector("[data-over]");
  const under = board && pageOf().querySelector(`.st-key-${CSS.escape(board.dataset.over)}`);
  if (under) mark(under, "figure");
}

function mark(figure, kind) {
  figure.dataset.presented = kind;
  for (let node = figure.parentElement; node && node !== pageOf().parentElement; node = node.parentElement) {
    node.dataset.presented ??= "way";
  }
}

/** The captions that follow it: what to look for, and what its numbers show. */
function captionsOf(figure) {
  let node = figure;
  while (node.parentElement !== pageOf() && !node.nextElementSibling) node = node.parentElement;
  const found = [];
  for (node = node.nextElementSibling; node?.querySelector(CAPTION) && !node.querySelector(FIGURES); node = node.nextElementSibling) {
    found.push(node);
  }
  return found;
}

/** What the chapter's input is, with its translation where there is one; "" where none is typed. */
function sentence() {
  const field = [...(pageOf()?.querySelectorAll(`${TYPED} :is(input, textarea)`) ?? [])].find((each) =>
    [...each.closest(TYPED).classList].some((name) => /^st-key-[a-z]+-(text|start|sentence)$/.test(name)),
  );
  const written = pageOf()?.querySelector(".st-key-card-main h2")?.textContent;
  return [field?.value, written].filter(Boolean).join(" → ");
}

const PARAMETER = "present";
const STEPS = { ArrowRight: 1, ArrowDown: 1, PageDown: 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1 };
const TYPED_IN = "textarea, select, [contenteditable], [role=textbox], [role=combobox], [role=dialog], input:not([type=radio], [type=checkbox], [type=range])";

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

export default viewComponent(
  (parent) => {
    const parts = partsOf(parent);
    parts.root.addEventListener("click", () => begin(middleOne()));
    return { parts };
  },
  (view, data) => {
    words = readJson(data);
    view.parts.start.textContent = words.start;
    if (requested()) begin();
  },
  () => hasLeft() && end(),
);
