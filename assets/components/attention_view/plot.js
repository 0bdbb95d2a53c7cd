// A plot: one map as cells, links or over a picture, with its own canvases, tooltip and title, and the colour scale.
// There are one or two side by side.

import { sizeCanvas } from "../shared/canvas.js";
import { element } from "../shared/elements.js";
import { marksOf } from "./actions.js";
import { asSecond, cellsOf, differenceOf, openSource, otherSource } from "./cells.js";
import { makePaint, paintOf, TICKS } from "./colours.js";
import { drawCells, drawLinkLabels, drawLinks, drawMarks, findLinks, hitLinks, hitMap, layOutLinks, layOutMap } from "./map.js";
import { nameOf } from "./measures.js";
import { cellsOver, drawOver, drawOverMarks, hitOver, layOutOver, peakOf } from "./over_picture.js";
import { comparedWith, groupOf, onPicture, zoomOf } from "./store.js";

/** What the plots show: [{source, cells, title}], from the state. */
function whatToPlot(/** @type {View} */ view) {
  const zoom = zoomOf(view);
  const source = openSource(view);
  const cellsFor = (each) => (onPicture(view) ? cellsOver(view, each) : cellsOf(view, each, zoom));
  const first = { source, cells: cellsFor(source), title: sourceName(view, source) };
  const other = otherSource(view);
  view.unequal = false;
  if (!other) return [first];
  const second = { source: other, cells: cellsFor(other), title: sourceName(view, other) };
  if (view.state.display.compare === "side") {
    if (other.input && !onPicture(view)) second.cells = asSecond(first.cells, second.cells);
    return [first, second];
  }
  const cells = differenceOf(view, first.cells, second.cells);
  view.unequal = !cells;
  if (!cells) return [first, second];
  const title = view.words.text("minus", { first: first.title, second: second.title });
  return [{ source, cells, title }];
}

/** The name of what a plot shows: a head, or how many are combined; of which input, where there are two. */
function sourceName(/** @type {View} */ view, { input, group, heads, how }) {
  const { words, store } = view;
  const [layer, head] = heads[0];
  const name =
    heads.length === 1
      ? words.text("head_name", { layer: groupOf(view, input, group).layers[layer].number, head: head + 1 })
      : words.text(view.state.display.mode === "links" && heads.length <= view.theme.heads.length ? "several_heads" : `combined_${how}`, { count: heads.length });
  const { inputs, groups } = store.base;
  return groups.length > 1 && comparedWith(view)?.input ? words.text("of_input", { name, input: inputs[input] }) : name;
}

/** Where the colours of a difference end: at the largest there is. */
const largestOf = ({ values }) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;

export function renderPlots(/** @type {View} */ view) {
  const { parts, state } = view;
  const found = whatToPlot(view);
  parts.plots.dataset.count = found.length;
  const { scale, palette } = state.display;
  const signed = found.filter(({ cells }) => cells.signed);
  if (signed.length && !onPicture(view)) view.paints.signed = makePaint(scale, palette, true, Math.max(...signed.map(({ cells }) => largestOf(cells))));
  view.plots = found.map((plot, i) => {
    const own = view.stages[i];
    own.figure.hidden = false;
    const layOut = { links: layOutLinks, picture: layOutOver }[state.display.mode] ?? layOutMap;
    const layout = layOut(plot.cells, own.stage.clientWidth, view.theme.font);
    return { ...plot, ...own, layout, links: [] };
  });
  view.stages.slice(found.length).forEach(({ figure }) => {
    figure.hidden = true;
  });
  const isNamed = state.display.compare === "side" && !comparedWith(view)?.input;
  for (const plot of view.plots) {
    plot.titleLine.textContent = (isNamed && nameOf(view, plot.source)) || plot.title;
    plot.titleLine.hidden = state.display.compare === "off" && state.display.heads === "one";
    plot.stage.style.height = `${plot.layout.height}px`;
    plot.stage.dataset.exact = plot.cells.exact;
    plot.stage.setAttribute("aria-label", mapLabel(view, plot));
    if (plot.layout.kind === "links") plot.links = linksOf(view, plot);
    paintPlot(view, plot, sizeCanvas(plot.ground, plot.layout.width, plot.layout.height));
  }
}

function mapLabel(/** @type {View} */ view, plot) {
  const group = groupOf(view, plot.source.input, plot.source.group);
  const labels = { name: plot.title, queries: group.queries_label, keys: group.keys_label };
  return view.words.text(`${plot.layout.kind}_label`, labels);
}

/** The links of a plot: of every chosen head in its own colour. */
function linksOf(/** @type {View} */ view, plot) {
  const { display } = view.state;
  const { source, cells } = plot;
  const several = !cells.signed && source.heads.length > 1 && source.heads.length <= view.theme.heads.length;
  const layers = several ? source.heads.map((head) => cellsOf(view, { ...source, heads: [head], how: "mean" }, zoomOf(view))) : [cells];
  plot.heads = several ? source.heads : [];
  return findLinks(layers, display.links);
}

/** What does not change with the pointer. */
export function paintPlot(/** @type {View} */ view, plot, context) {
  if (plot.layout.kind === "links") drawLinks(context, view, plot);
  else if (plot.layout.kind === "picture") drawOver(context, view, plot);
  else drawCells(context, plot.cells, plot.layout, paintOf(view, plot.cells));
}

/** What does: labels, outlines, and in links those of the tokens in focus. */
export function paintMarks(/** @type {View} */ view, plot, context) {
  plot.ground.style.opacity = 1;
  if (plot.layout.kind === "picture") {
    drawOverMarks(context, view, plot);
    return;
  }
  const { rows, columns } = marksOf(view, plot);
  if (plot.layout.kind === "map") {
    drawMarks(context, plot.layout, view.theme, rows, columns);
    return;
  }
  const at = (marks) => new Set(marks.map((mark) => mark.at));
  const [ownRows, ownColumns] = [at(rows), at(columns)];
  const focused = ownRows.size + ownColumns.size > 0;
  if (focused) {
    plot.ground.style.opacity = 0.13;
    drawLinks(context, view, plot, (link) => ownRows.has(link.row) || ownColumns.has(link.column));
  }
  drawLinkLabels(context, plot, view.theme, rows, columns);
}

/** What lies under a point of a plot, in tokens or words: {row, column, by}, or null. */
export function hitPlot(plot, x, y) {
  const { cells, layout } = plot;
  const hit = ({ links: hitLinks, picture: hitOver }[layout.kind] ?? hitMap)(layout, cells, x, y);
  return hit?.isUnit ? hit : hit && {
    by: hit.by,
    row: hit.row === null ? null : cells.queries.unit(hit.row),
    column: hit.column === null ? null : cells.keys.unit(hit.column),
  };
}

/**
 * The scale of a plot's colours, or of weights where none is given: {label, long, css(part), ticks: [{at, text}]}, from 0
 * to 1 of its length. Null where lines are as wide as their weight, or nothing has colour.
 */
export function barOf(/** @type {View} */ view, plot) {
  const { words, state } = view;
  const { scale, patches } = state.display;
  const kind = plot?.layout.kind ?? "map";
  if (kind === "links" || (kind === "picture" && patches === "off" && !plot.cells.points)) return null;
  const paint = plot ? paintOf(view, plot.cells) : view.paints.weights;
  const what = plot?.cells.differs ? "difference" : "weight";
  const bar = words.text(`bar_${what}`);
  return {
    label: words.text(what),
    long: scale === "linear" ? bar : words.text(`bar_${scale}`, { what: bar }),
    css: (part) => paint.css(Math.round(255 * part)),
    ticks: kind === "picture" ? endsOf(words, paint, peakOf(plot.cells)) : ticksOf(words, paint, TICKS[scale]),
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

export function drawScale(/** @type {View} */ view) {
  const { scale } = view.parts;
  const found = barOf(view, view.plots[0]);
  scale.hidden = !found;
  if (!found) return;
  const colours = Array.from({ length: 11 }, (_, i) => found.css(i / 10));
  const ticks = found.ticks.map(({ at, text }) => element("span", "tick", { style: `left: ${100 * at}%` }, text));
  scale.replaceChildren(found.label, element("span", "bar", { style: `background: linear-gradient(to right, ${colours.join(", ")})` }, ...ticks));
}
