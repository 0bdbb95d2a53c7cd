// A chapter's figures and questions, and one of them alone, with what is said about it.

const NAMED =
  '[class*="st-key-part-"]:is([class*="-figure-"], [class*="-heatmap-"]), [class*="st-key-figure-"], [class*="st-key-heatmap-"], [class*="st-key-exercise-"], .st-key-maps, .st-key-maps2';
// A high part of the page is one until it is here, and then the figures in it are; a film of images, say, has no name.
const FIGURES = `${NAMED}, [data-figure="pending"], [data-figure="here"]:not(:has(${NAMED}))`;
const TYPED = ':is([class*="-text"], [class*="-start"], [class*="-sentence"])';
const CAPTION = '[data-testid="stCaptionContainer"]';

let last = ""; // key of the figure that was shown last

export const pageOf = () => document.querySelector(".stMainBlockContainer");

const marked = (kind) => document.querySelector(`[data-presented="${kind}"]`);

export const presented = () => marked("question") ?? marked("figure");

const keyOf = (figure) => [...figure.classList].find((name) => name.startsWith("st-key-")) ?? "";

/** Figures and questions in reading order, without those of closed expanders; for a lazy figure, its placeholder. */
export function figuresOf() {
  const found = [...(pageOf()?.querySelectorAll(FIGURES) ?? [])].filter((each) => !each.parentElement.closest(FIGURES));
  const shown = presented();
  hideAll();
  const visible = found.filter((each) => each.getClientRects().length);
  if (shown) markAlone(shown);
  return visible;
}

/** The figure that was shown last, if the page has been drawn again; else the first. */
export function figureLike() {
  const figures = figuresOf();
  return figures.find((each) => keyOf(each) === last) ?? figures[0];
}

/** The figure that this element is, contains or is inside of. */
export const figureAt = (element) => figuresOf().find((each) => each.contains(element) || element.contains(each));

/**
 * The figure or question of this name ("figure-weights", "exercise-bag", "maps"), also in a section, or the first of a lazy
 * part of this name, drawn or not; else the first of all.
 */
export function figureNamed(name) {
  const figures = figuresOf();
  const part = `[class*="st-key-part-"][class*="-${CSS.escape(name)} "], [class*="st-key-part-"][class$="-${CSS.escape(name)}"]`;
  const isNamed = (node) => [...node.classList].some((each) => each === `st-key-${name}` || (each.startsWith("st-key-part-") && each.endsWith(`-${name}`)));
  const holds = (each) => isNamed(each) || [...each.querySelectorAll('[class*="st-key-"]')].some(isNamed);
  return figures.find(holds) ?? figures.find((each) => each.closest(part)) ?? figures[0];
}

/** The figure closest to the middle of the window. */
export function middleOne() {
  const away = (figure) => {
    const { top, bottom } = figure.getBoundingClientRect();
    return Math.abs((top + bottom - window.innerHeight) / 2);
  };
  return figuresOf().reduce((best, each) => (best && away(best) <= away(each) ? best : each), undefined);
}

export function showAlone(figure) {
  hideAll();
  markAlone(figure);
  last = keyOf(figure);
  figure.closest('[data-testid="stMain"]')?.scrollTo(0, 0);
}

export function hideAll() {
  for (const node of document.querySelectorAll("[data-presented]")) delete node.dataset.presented;
}

export const isExercise = (figure) => keyOf(figure).startsWith("st-key-exercise-");

/** Mark it, what is said about it or drawn on it, and all that contains these; again where the page was drawn anew. */
export function markAlone(figure) {
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
export function sentence() {
  const field = [...(pageOf()?.querySelectorAll(`${TYPED} :is(input, textarea)`) ?? [])].find((each) =>
    [...each.closest(TYPED).classList].some((name) => /^st-key-[a-z]+-(text|start|sentence)$/.test(name)),
  );
  const written = pageOf()?.querySelector(".st-key-card-main h2")?.textContent;
  return [field?.value, written].filter(Boolean).join(" → ");
}
