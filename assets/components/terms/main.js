// Terms of the field: pointing at one in a text, or touching it, shows what the other languages call it, and some light
// what they name in a figure.
//
// Streamlit's text is React's, so nothing is put into it: the term is found at the pointer, and marked as a highlight.

import { element } from "../shared/elements.js";
import { readJson } from "../shared/mount.js";
import { listenToFigures, markLit, pointAtParts } from "../shared/terms.js";

// Terms that name a part of a figure or a control: pointing at one, or giving it the focus, lights both ends.

const LINK = 'a[href^="#part-"]';
const SECTION_LINK = 'a[href^="#section-"]'; // of a takeaway: the optional section that shows it
const KEY = "st-key-";

const nameOf = (link) => link.getAttribute("href").slice("#part-".length);
const linksOf = (names) => [...document.querySelectorAll(LINK)].filter((link) => names.includes(nameOf(link)));

/** The controls of these names in a chapter: Streamlit writes their keys, PREFIX-NAME, as classes. */
const controlsOf = (names, prefix) => names.flatMap((name) => [...document.getElementsByClassName(`${KEY}${prefix}-${name}`)]);

/** The name of the control that an element is in, or null. */
function controlAt(element, prefix) {
  const start = `${KEY}${prefix}-`;
  const control = element.closest?.(`[class*="${start}"]`);
  const key = control && [...control.classList].find((each) => each.startsWith(start));
  return key ? key.slice(start.length) : null;
}

function mark(elements, kind) {
  for (const element of document.querySelectorAll(`[data-lit="${kind}"]`)) if (!elements.includes(element)) markLit(element, []);
  for (const element of elements) markLit(element, [kind]);
}

/** Listen to the page. `prefix` answers that of the chapter's controls. */
function listenToLinks(prefix) {
  const fromText = (link) => {
    const names = link ? [nameOf(link)] : [];
    mark(link ? linksOf(names) : [], "term");
    mark(controlsOf(names, prefix()), "control");
    pointAtParts(names);
  };
  const enter = ({ target }) => {
    const link = target.closest?.(LINK);
    const control = link ? null : controlAt(target, prefix());
    if (link) fromText(link);
    else if (control) mark(linksOf([control]), "term");
  };
  const leave = ({ type, target, relatedTarget }) => {
    const link = target.closest?.(LINK);
    // A term that was clicked keeps the focus, and what it lights, while the pointer goes on.
    const focused = type === "pointerout" ? document.activeElement?.closest(LINK) : null;
    if (link && !link.contains(relatedTarget)) fromText(focused);
    else if (controlAt(target, prefix())) mark([], "term");
  };
  for (const name of ["pointerover", "focusin"]) addEventListener(name, enter, { passive: true });
  for (const name of ["pointerout", "focusout"]) addEventListener(name, leave, { passive: true });
  // It leads to what it lights, and is not written into the address.
  addEventListener("click", (event) => {
    const link = event.target.closest?.(LINK);
    if (!link) return;
    event.preventDefault();
    fromText(link);
    const lit = document.querySelector("[data-lit]:not(a)");
    lit?.scrollIntoView({ block: "nearest", behavior: "smooth" });
  });
  listenToFigures((names) => mark(linksOf(names), "term"));
  addEventListener("click", (event) => {
    const link = event.target.closest?.(SECTION_LINK);
    const section = link && document.querySelector(`.${KEY}${link.getAttribute("href").slice(1)}`);
    if (!section) return;
    event.preventDefault(); // it opens a section, and is not written into the address
    section.querySelector("details:not([open]) > summary")?.click();
    section.scrollIntoView({ block: "start", behavior: "smooth" });
  });
}

const TEXT = ".stMarkdown :is(p, li), [data-testid=stCaptionContainer] p";
const NO_TEXT = 'a:not([href^="#part-"]), button, label, summary, code, pre, .katex, input, textarea';
const REST = 150; // ms that the pointer rests before the term is looked up

const state = { translations: {}, prefix: "", pattern: null, tip: null, timer: 0 };

/** The term around a place in a text, as [start, end]. */
function termAt(text, offset, pattern) {
  for (const match of text.matchAll(pattern)) {
    const end = match.index + match[0].length;
    if (match.index <= offset && offset <= end) return [match.index, end];
  }
  return null;
}

/** Every form of a term, the longest first; a Latin one only as a whole word. */
function patternOf(forms) {
  const escaped = forms
    .toSorted((a, b) => b.length - a.length)
    .map((form) => form.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
    .map((form) => (/[\u2e80-\u9fff]/.test(form) ? form : `(?<!\\p{L})${form}(?!\\p{L})`));
  return new RegExp(escaped.join("|"), "giu");
}

function placeAt(x, y) {
  if (document.caretPositionFromPoint) {
    const found = document.caretPositionFromPoint(x, y);
    return found && [found.offsetNode, found.offset];
  }
  const range = document.caretRangeFromPoint?.(x, y);
  return range && [range.startContainer, range.startOffset];
}

function rangeAt({ clientX: x, clientY: y, target }) {
  if (!target.closest?.(TEXT) || target.closest(NO_TEXT)) return null;
  const [node, offset] = placeAt(x, y) ?? [];
  const found = node?.nodeType === Node.TEXT_NODE && termAt(node.data, offset, state.pattern);
  if (!found) return null;
  const range = document.createRange();
  range.setStart(node, found[0]);
  range.setEnd(node, found[1]);
  const inside = [...range.getClientRects()].some((box) => box.left <= x && x <= box.right && box.top <= y && y <= box.bottom);
  return inside ? range : null;
}

function hide() {
  clearTimeout(state.timer);
  state.tip?.remove();
  state.tip = null;
  CSS.highlights?.delete("atlas-term");
}

function show(event) {
  hide();
  const range = rangeAt(event);
  const text = range && state.translations[range.toString().toLowerCase()];
  if (!text) return;
  CSS.highlights?.set("atlas-term", new Highlight(range));
  const tip = element("div", "atlas-term", { role: "tooltip" }, text);
  document.body.append(tip);
  const { left, top, bottom } = range.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(left, innerWidth - tip.offsetWidth - 4))}px`;
  tip.style.top = `${top > tip.offsetHeight + 8 ? top - tip.offsetHeight - 6 : bottom + 6}px`;
  state.tip = tip;
}

function later(event) {
  if (event.pointerType === "touch") return;
  hide();
  state.timer = setTimeout(show, REST, event);
}

export default function ({ data }) {
  if (!data) return;
  const first = !state.pattern;
  const { translations, prefix } = readJson(data);
  state.prefix = prefix;
  state.translations = Object.fromEntries(Object.entries(translations).map(([form, text]) => [form.toLowerCase(), text]));
  state.pattern = patternOf(Object.keys(translations));
  if (!first) return;
  addEventListener("pointermove", later, { passive: true });
  addEventListener("click", show);
  addEventListener("scroll", hide, { capture: true, passive: true });
  addEventListener("keydown", ({ key }) => key === "Escape" && hide());
  listenToLinks(() => state.prefix);
}
