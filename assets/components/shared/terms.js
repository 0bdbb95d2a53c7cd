// Terms of a text and parts of a figure point at each other: a link to #part-NAME in the text names a part, or a control.

const FROM_TEXT = "atlas-term"; // the text points at parts
const FROM_FIGURE = "atlas-part"; // a figure points at terms

const listenTo = (event) => (show) => {
  const listen = ({ detail }) => show(detail);
  document.addEventListener(event, listen);
  return () => document.removeEventListener(event, listen);
};

/** Call `show` with the names of the parts that the text points at, none when it lets go; returns what ends it. */
export const listenToTerms = listenTo(FROM_TEXT);

export const pointAtParts = (names) => document.dispatchEvent(new CustomEvent(FROM_TEXT, { detail: names }));

/** Call `show` with the names of the terms that a figure points at, and "row-N" of a map's row; returns what ends it. */
export const listenToFigures = listenTo(FROM_FIGURE);

let shown = "";

/** Point at terms; a figure that says the same again is not heard. */
export function pointAtTerms(names) {
  if (String(names) === shown) return;
  shown = String(names);
  document.dispatchEvent(new CustomEvent(FROM_FIGURE, { detail: names }));
}

/** Mark an element as what the text points at, for style sheets. */
export function markLit(element, names) {
  if (names.length) element.dataset.lit = names.join(" ");
  else delete element.dataset.lit;
}
