// One heatmap as Python describes it (ui/widgets/heatmap.py): what it shows, which part of it, when it is painted
// again, and pointing at a cell by mouse, finger or keys.

import { makePalette, stageHeight } from "../shared/canvas.js";
import { fillIn } from "../shared/elements.js";
import { partsOf, readFrame, stopWatching, viewComponent, watchWidth } from "../shared/mount.js";
import { listenToTerms, markLit, pointAtTerms } from "../shared/terms.js";
import { boxOf, cellAt, drawMap, drawMarks, drawScale, FONT, isInside, layOut, TALLEST } from "./draw.js";

function readHeatmap(bytes) {
  const { header, buffer, start } = readFrame(bytes);
  const { rows, columns, low, high, exact } = header;
  const pixels = new Uint8Array(buffer, start + header.pixels, rows * columns);
  const numbers = (Kind, count) => {
    const from = start + exact.offset;
    return new Kind(buffer.slice(from, from + count * Kind.BYTES_PER_ELEMENT));
  };
  const frequencies = exact?.kind === "sinusoid" ? numbers(Float64Array, Math.ceil(columns / 2)) : null;
  return { header, rows, columns, pixels, frequencies, value: valueOfCells() };

  /** The value of a cell: exact where Python sent what it takes, else what its 8 bits say. */
  function valueOfCells() {
    if (frequencies) {
      return (row, column) => (column % 2 ? Math.cos : Math.sin)(row * frequencies[column >> 1]);
    }
    if (exact?.kind === "cells") {
      const cells = numbers(Float32Array, rows * columns);
      return (row, column) => cells[row * columns + column];
    }
    return (row, column) => low + (pixels[row * columns + column] / 255) * (high - low);
  }
}

const DRAG = 6; // pixels after which a mouse selects a part instead of a cell
const SPEAK_DELAY = 250; // ms before a cell is announced, so that holding an arrow key is silent

function listen(view) {
  const { stage, whole } = view.parts;
  const at = (event) => {
    const { left, top } = stage.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  };
  stage.addEventListener("pointerdown", (event) => {
    const [x, y] = at(event);
    if (isInside(view.layout, x, y) && event.pointerType === "mouse" && event.button === 0) {
      view.drag = { x, y, toX: x, toY: y, dragged: false };
      stage.setPointerCapture(event.pointerId);
    } else pointAt(view, isInside(view.layout, x, y) ? cellAt(view.layout, view.window, x, y) : null);
  });
  stage.addEventListener("pointermove", (event) => {
    const [x, y] = at(event);
    const { drag, layout } = view;
    if (drag) {
      drag.toX = Math.min(Math.max(x, layout.left), layout.right);
      drag.toY = Math.min(Math.max(y, layout.top), layout.bottom);
      drag.dragged ||= Math.hypot(x - drag.x, y - drag.y) > DRAG;
    }
    pointAt(view, isInside(layout, x, y) ? cellAt(layout, view.window, x, y) : null);
  });
  stage.addEventListener("pointerup", () => {
    const { drag } = view;
    view.drag = null;
    if (drag?.dragged) show(view, between(view, drag));
  });
  stage.addEventListener("pointercancel", () => {
    view.drag = null;
    pointAt(view, null);
  });
  stage.addEventListener("pointerleave", () => pointAt(view, null));
  stage.addEventListener("dblclick", () => show(view, null));
  stage.addEventListener("keydown", (event) => move(view, event));
  stage.addEventListener("focus", () => pointAtTerms(Object.keys(view.map?.header.parts ?? {})));
  stage.addEventListener("blur", () => pointAtTerms([]));
  whole.addEventListener("click", () => {
    show(view, null);
    stage.focus();
  });
}

function between({ layout, window: shown }, { x, y, toX, toY }) {
  const first = cellAt(layout, shown, Math.min(x, toX), Math.min(y, toY));
  const last = cellAt(layout, shown, Math.max(x, toX) - 1, Math.max(y, toY) - 1);
  return { ...first, rows: last.row - first.row + 1, columns: last.column - first.column + 1 };
}

/** Show a part of the map, or with null all of it. */
function show(view, shown) {
  view.window = shown;
  view.cursor = null;
  view.render();
}

function move(view, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const { map, window: shown } = view;
  const stride = event.shiftKey ? 10 : 1;
  const steps = {
    ArrowUp: [-stride, 0], ArrowDown: [stride, 0], ArrowLeft: [0, -stride], ArrowRight: [0, stride],
    PageUp: [-10, 0], PageDown: [10, 0], Home: [0, -map.columns], End: [0, map.columns],
  };
  if (event.key in steps) {
    const [down, right] = view.cursor ? steps[event.key] : [0, 0];
    const from = view.cursor ?? { row: shown.row, column: shown.column };
    const within = (index, count) => Math.min(Math.max(index, 0), count - 1);
    const cursor = { row: within(from.row + down, map.rows), column: within(from.column + right, map.columns) };
    const visible = around(view, cursor, shown.rows, shown.columns, false);
    if (visible.row !== shown.row || visible.column !== shown.column) show(view, visible);
    pointAt(view, cursor);
  } else if (event.key === "+" || event.key === "=" || event.key === "-") {
    const factor = event.key === "-" ? 2 : 0.5;
    const { cursor } = view;
    const centre = cursor ?? { row: shown.row + (shown.rows >> 1), column: shown.column + (shown.columns >> 1) };
    show(view, around(view, centre, shown.rows * factor, shown.columns * factor, true));
    pointAt(view, cursor);
  } else if (event.key === "Escape") {
    if (isWhole(view)) pointAt(view, null);
    else show(view, null);
  } else return;
  event.preventDefault();
  event.stopPropagation();
}

/** A window of about this size that contains a cell: centred on it, or moved as little as possible. */
function around({ map, window: shown }, cell, rows, columns, centred) {
  const fit = (at, first, length, count) => {
    const size = Math.min(Math.max(Math.round(length), 4), count);
    const start = centred ? at - (size >> 1) : Math.min(Math.max(first, at - size + 1), at);
    return [Math.min(Math.max(start, 0), count - size), size];
  };
  const [row, height] = fit(cell.row, shown.row, rows, map.rows);
  const [column, width] = fit(cell.column, shown.column, columns, map.columns);
  return { row, column, rows: height, columns: width };
}

const isWhole = ({ map, window: shown }) => shown.rows === map.rows && shown.columns === map.columns;

function describe({ map, number }, { row, column }) {
  const { words, exact } = map.header;
  const value = number.format(map.value(row, column));
  return fillIn(words.cell, { row, column, value: exact ? value : fillIn(words.about, { value }) });
}

function pointAt(view, cell) {
  const { parts } = view;
  const same = cell?.row === view.cursor?.row && cell?.column === view.cursor?.column;
  view.cursor = cell;
  if (!same) pointAtTerms(cell ? Object.keys(view.map.header.parts) : []);
  drawMarks(view);
  if (same && !parts.tip.hidden === Boolean(cell)) return;
  parts.tip.hidden = !cell;
  clearTimeout(view.speaking);
  if (!cell) return;
  const text = describe(view, cell);
  parts.tip.textContent = text;
  placeTip(view, cell);
  view.speaking = setTimeout(() => (parts.live.textContent = text), SPEAK_DELAY);
}

function placeTip({ parts, layout, window: shown }, cell) {
  const { x, y, width, height } = boxOf(layout, shown, cell);
  const { offsetWidth, offsetHeight } = parts.tip;
  const right = x + width + 10;
  const left = right + offsetWidth <= layout.width ? right : Math.max(0, x - 10 - offsetWidth);
  const top = Math.min(Math.max(0, y + height / 2 - offsetHeight / 2), layout.height - offsetHeight);
  Object.assign(parts.tip.style, { left: `${left}px`, top: `${top}px` });
}

const AROUND = 120; // pixels over and under the cells: the scale, labels, the hint

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
  const { left, top, right, bottom } = view.layout;
  Object.assign(parts.stage.dataset, { rows: map.rows, columns: map.columns, area: [left, top, right, bottom].join(" ") });
}

export default viewComponent(createView, receive, closeView);
