// A plot: one map as cells or links, with its own canvases, tooltip and title. There are one or two side by side.

import { sizeCanvas } from "../shared/canvas.js";
import { asSecond, cellsOf, differenceOf, openSource, otherSource } from "./cells.js";
import { makePaint, paintOf } from "./colours.js";
import { drawLinkLabels, drawLinks, findLinks, hitLinks, layOutLinks } from "./links.js";
import { drawCells, drawMarks } from "./map_draw.js";
import { hitMap, layOutMap } from "./map_layout.js";
import { cellsOver, drawOver, drawOverMarks, hitOver, layOutOver } from "./over_picture.js";
import { marksOf } from "./pointer.js";
import { comparedWith, onPicture, zoomOf } from "./state.js";
import { groupOf } from "./store.js";

/** What the plots show: [{source, cells, title}], from the state. */
function whatToPlot(view) {
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
function sourceName(view, { input, group, heads, how }) {
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

/** Lay out and paint all plots. */
export function renderPlots(view) {
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
  for (const plot of view.plots) {
    plot.titleLine.textContent = plot.title;
    plot.titleLine.hidden = state.display.compare === "off" && state.display.heads === "one";
    plot.stage.style.height = `${plot.layout.height}px`;
    plot.stage.dataset.exact = plot.cells.exact;
    plot.stage.setAttribute("aria-label", mapLabel(view, plot));
    if (plot.layout.kind === "links") plot.links = linksOf(view, plot);
    paintPlot(view, plot, sizeCanvas(plot.ground, plot.layout.width, plot.layout.height));
  }
}

function mapLabel(view, plot) {
  const group = groupOf(view, plot.source.input, plot.source.group);
  const labels = { name: plot.title, queries: group.queries_label, keys: group.keys_label };
  return view.words.text(`${plot.layout.kind}_label`, labels);
}

/** The links of a plot: of every chosen head in its own colour. */
function linksOf(view, plot) {
  const { display } = view.state;
  const { source, cells } = plot;
  const several = !cells.signed && source.heads.length > 1 && source.heads.length <= view.theme.heads.length;
  const layers = several ? source.heads.map((head) => cellsOf(view, { ...source, heads: [head], how: "mean" }, zoomOf(view))) : [cells];
  plot.heads = several ? source.heads : [];
  return findLinks(layers, display.links);
}

/** What does not change with the pointer. */
export function paintPlot(view, plot, context) {
  if (plot.layout.kind === "links") drawLinks(context, view, plot);
  else if (plot.layout.kind === "picture") drawOver(context, view, plot);
  else drawCells(context, plot.cells, plot.layout, paintOf(view, plot.cells));
}

/** What does: labels, outlines, and in links those of the tokens in focus. */
export function paintMarks(view, plot, context) {
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
  plot.ground.style.opacity = focused ? 0.13 : 1;
  if (focused) drawLinks(context, view, plot, (link) => ownRows.has(link.row) || ownColumns.has(link.column));
  drawLinkLabels(context, plot, view.theme, rows, columns);
}

/** What lies under a point of a plot, in tokens or words: {row, column, by}, or null. */
export function hitPlot(plot, x, y) {
  const { cells, layout } = plot;
  const hit = ({ links: hitLinks, picture: hitOver }[layout.kind] ?? hitMap)(layout, cells, x, y);
  return hit && {
    by: hit.by,
    row: hit.row === null ? null : cells.queries.unit(hit.row),
    column: hit.column === null ? null : cells.keys.unit(hit.column),
  };
}
