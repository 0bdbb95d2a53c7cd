// Terms that name a part of a figure or a control: pointing at one, or giving it the focus, lights both ends.

import { listenToFigures, markLit, pointAtParts } from "../shared/terms.js";

const LINK = 'a[href^="#part-"]';
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
export function listenToLinks(prefix) {
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
}
