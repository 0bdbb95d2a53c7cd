// The layout of the board over a figure in CSS pixels, and the description of a point on it.

const TOP = 99;

/** The position of each level as a share of the width, and the description of one level. */
function levelsOf({ kind, places, names, x, y, language }) {
  const weights = kind === "weights";
  const across = weights ? names.map((_, i) => (i + 0.5) / names.length) : places;
  const { format, comma } = numbersOf(language);
  const value = (level, [low, high]) => format(low + (level / TOP) * (high - low));

  const describe = (levels, at) => {
    if (kind === "star") return value(levels[0], x) + comma + value(levels[1], y);
    if (!weights) return `${format(x[0] + places[at] * (x[1] - x[0]))}: ${value(levels[at], y)}`;
    return `${names[at]}: ${percent(shares(levels)[at])}`;
  };
  return { across, describe };
}

/**
 * Edges of the drawing, from the plotly axes of its figure, with `levelsOf`; null until the figure is drawn.
 * Weights are horizontal bars there, the first on top, with levels to the right; or one row of cells.
 */
export function layOver(data, figure, root) {
  const axes = figure?._fullLayout && data.over.axes.map((name) => figure._fullLayout[name]);
  if (!axes?.every((axis) => axis?._length)) return null;
  const [place, here] = [figure.getBoundingClientRect(), root.getBoundingClientRect()];
  const scale = place.width / figure.offsetWidth || 1; // it is enlarged while it is presented
  const [across, up] = axes.map((axis) => (value) => scale * (axis._offset + axis.d2p(value)));
  const weights = data.kind === "weights";
  const turned = weights && !data.over.cells;
  const all = [-0.5, data.names.length - 0.5];
  const [left, right] = (turned ? [0, 1] : weights ? all : data.x).map(across);
  const [top, bottom] = (turned ? all : weights ? [-0.5, 0.5] : data.y.toReversed()).map(up);
  const [x, y] = [place.left - here.left, place.top - here.top];
  const { width, height } = place;
  return { ...levelsOf(data), x, y, width, height, left, right, top, bottom, turned };
}

/** Numbers with two decimals at most, and what is between coordinates: a comma unless the language has it in numbers. */
function numbersOf(language) {
  const locale = new Intl.NumberFormat(language, { maximumFractionDigits: 2 });
  return {
    format: (number) => locale.format(Math.round(number * 100) / 100 + 0).replace("-", "−"), // + 0: −0 is 0
    comma: locale.format(0.5).includes(",") ? "; " : ", ",
  };
}

/** Levels as parts of one whole. */
export function shares(levels) {
  const sum = levels.reduce((a, b) => a + b, 0);
  return levels.map((level) => (sum ? level / sum : 0));
}

export const percent = (share) => `${Math.round(100 * share)}%`;
