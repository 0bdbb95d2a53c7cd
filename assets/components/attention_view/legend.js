// The colour scale.

import { element } from "../shared/elements.js";
import { paintOf, TICKS } from "./colours.js";
import { peakOf } from "./over_picture.js";

/**
 * The scale of a plot's colours, or of weights where none is given: {label, long, css(part), ticks: [{at, text}]}, from 0
 * to 1 of its length. Null where lines are as wide as their weight, or nothing has colour.
 */
export function barOf(view, plot) {
  const { words, state } = view;
  const { scale, patches } = state.display;
  const kind = plot?.layout.kind ?? "map";
  if (kind === "links" || (kind === "picture" && patches === "off")) return null;
  const paint = plot ? paintOf(view, plot.cells) : view.paints.weights;
  const what = plot?.cells.differs ? "difference" : "weight";
  return {
    label: words.text(what),
    long: words.text(`bar_${what}_${scale}`),
    css: (part) => paint.css(Math.round(255 * part)),
    ticks: kind === "picture" ? endsOf(words, paint, peakOf(plot.cells.values, plot.layout.special)) : ticksOf(words, paint, TICKS[scale]),
  };
}

/** Over a picture: up to the largest weight on a patch. */
const endsOf = (words, paint, peak) => [
  { at: 0, text: paint.signed ? words.signed(-peak) : "0" },
  { at: 1, text: paint.signed ? words.signed(peak) : words.number(peak) },
];

/** As wide as weights from 0 to 1 lie in the palette, with a few of them named; differences as far as there are any. */
function ticksOf(words, paint, weights) {
  if (paint.signed) return [-paint.most, 0, paint.most].map((value) => ({ at: paint.step(value) / 255, text: words.signed(value) }));
  return weights.map((weight) => ({ at: paint.step(weight) / 255, text: words.tick(weight) }));
}

/** The legend. */
export function drawScale(view) {
  const { scale } = view.parts;
  const found = barOf(view, view.plots[0]);
  scale.hidden = !found;
  if (!found) return;
  const bar = element("span", "bar");
  bar.style.background = `linear-gradient(to right, ${Array.from({ length: 11 }, (_, i) => found.css(i / 10)).join(", ")})`;
  for (const { at, text } of found.ticks) {
    const tick = element("span", "tick");
    tick.style.left = `${100 * at}%`;
    tick.textContent = text;
    bar.append(tick);
  }
  scale.replaceChildren(found.label, bar);
}
