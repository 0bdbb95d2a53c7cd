// A chapter's figures, and one of them alone.

const FIGURES =
  '[class*="st-key-part-"]:is([class*="-figure-"], [class*="-heatmap-"]), [class*="st-key-figure-"], [class*="st-key-heatmap-"], .st-key-maps, .st-key-maps2';

let last = ""; // key of the figure that was shown last

export const pageOf = () => document.querySelector(".stMainBlockContainer");

export const presented = () => document.querySelector('[data-presented="figure"]');

const keyOf = (figure) => [...figure.classList].find((name) => name.startsWith("st-key-")) ?? "";

/** The figures in reading order, without those of closed expanders; for a lazy figure, its placeholder. */
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

function markAlone(figure) {
  figure.dataset.presented = "figure";
  for (let node = figure.parentElement; node && node !== pageOf().parentElement; node = node.parentElement) {
    node.dataset.presented = "way";
  }
}
