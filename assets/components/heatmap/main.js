// One heatmap: what it shows, which part of it, and when it is painted again.

import { mountView, partsOf, stopWatching, watchWidth } from "../shared/mount.js";
import { stageHeight } from "../shared/stage.js";
import { listenToTerms, markLit } from "../shared/terms.js";
import { drawMap, drawMarks, drawScale } from "./draw.js";
import { FONT, layOut, TALLEST } from "./layout.js";
import { readHeatmap } from "./payload.js";
import { isWhole, listen, pointAt } from "./pointer.js";
import { makePalette } from "../shared/palette.js";

const AROUND = 120; // pixels over and under the cells: the scale, labels, the hint

const views = new WeakMap();

function createView(parent) {
  const parts = partsOf(parent);
  const view = { parts, map: null, window: null, cursor: null, drag: null, lit: [] };
  view.render = () => render(view);
  listen(view);
  view.stopTerms = listenToTerms((names) => highlight(view, names));
  watchWidth(view, render);
  return view;
}

function closeView(view) {
  stopWatching(view);
  clearTimeout(view.speaking);
  view.stopTerms();
}

/** Frame what a term of the text names: a row, or the columns that belong together. */
function highlight(view, names) {
  const { parts, map } = view;
  view.lit = Object.keys(map?.header.parts ?? {}).filter((name) => names.includes(name));
  markLit(parts.root, view.lit);
  markLit(parts.root.getRootNode().host ?? parts.root, view.lit);
  if (view.layout) drawMarks(view);
}

/** Take new data; the part shown stays while the map keeps its size. */
function receive(view, bytes) {
  const { parts } = view;
  const before = view.map;
  const map = readHeatmap(bytes);
  const { words, language, digits, colours } = map.header;
  view.map = map;
  if (before?.rows !== map.rows || before?.columns !== map.columns) {
    Object.assign(view, { window: null, cursor: null, drag: null });
  }
  view.number = new Intl.NumberFormat(language, { maximumFractionDigits: digits, signDisplay: "negative" });
  view.palette = makePalette(colours);
  parts.stage.setAttribute("aria-label", words.alt);
  parts.whole.textContent = words.whole;
  parts.hint.textContent = words.hint;
  drawScale(view);
  render(view);
}

/** Everything, from the data and the width there is. */
function render(view) {
  const { parts, map } = view;
  view.width = parts.root.clientWidth;
  if (!map || !view.width) return;
  view.window ??= { row: 0, column: 0, rows: map.rows, columns: map.columns };
  const style = getComputedStyle(parts.root);
  view.theme = { font: style.fontFamily, text: style.color };
  const context = parts.cells.getContext("2d");
  context.font = `${FONT}px ${view.theme.font}`;
  const tallest = (stageHeight(parts.root) ?? TALLEST + AROUND) - AROUND;
  view.layout = layOut(map, view.window, view.width, tallest, (text) => context.measureText(text).width);
  parts.stage.style.height = `${view.layout.height}px`;
  parts.whole.hidden = isWhole(view);
  drawMap(view);
  pointAt(view, view.cursor);
  // What is on the screen now, for whoever waits for it.
  Object.assign(parts.stage.dataset, { rows: map.rows, columns: map.columns });
}

export default function (component) {
  const { data } = component;
  if (!data) return undefined;
  const { view, unmount } = mountView(views, component, createView, closeView);
  receive(view, data);
  return unmount;
}
