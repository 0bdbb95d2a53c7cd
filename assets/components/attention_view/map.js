// A map as cells or as links, laid out, painted on a canvas or as SVG, and what lies under a point of it. Cells are
// painted once, labels and outlines again on every pointer move.

import { shorten, textWidth, typeScale } from "../shared/canvas.js";
import { onCanvas, rasterise } from "./colours.js";

const LARGEST_CELL = 64;
const TALLEST_CELL = 44;
const TALLEST_MAP = 640;
export const SEPARATE = 10; // cells from here on are whole pixels with a gap between them
const SLANT = Math.SQRT1_2; // keys lean at 45 degrees where cells are wide enough, else they stand upright
const MAX_MEASURED = 300; // labels: of more, every n-th is measured

/** The label of a bin, shortened to fit, and the widest of a side. */
function fitLabels(side, family, size, width) {
  const font = `bold ${size}px ${family}`;
  const measure = (text) => textWidth(text, font);
  const cache = new Map();
  const label = (bin) => {
    if (!cache.has(bin)) {
      const text = shorten(side.name(bin), width, measure);
      cache.set(bin, { text, width: measure(text) });
    }
    return cache.get(bin);
  };
  const every = Math.ceil(side.count / MAX_MEASURED);
  let widest = 0;
  for (let bin = 0; bin < side.count; bin += every) widest = Math.max(widest, label(bin).width);
  return { label, widest, count: side.count };
}

/** Cell width that leaves room for every leaning label: the last ones reach past the last cell. */
function leaningCell(labels, left, width) {
  let cell = Math.min(LARGEST_CELL * typeScale(), (width - left) / labels.count);
  if (cell < 6) return cell;
  for (let column = 0; column < labels.count; column += 1) {
    cell = Math.min(cell, (width - left - labels.label(column).width * SLANT - 6) / (column + 0.5));
  }
  return cell;
}

/** Large cells are a little flatter than square, as text is; few rows stay tall enough, many stay on the screen. */
function heightFor(cellWidth, rows) {
  const wanted = Math.max(cellWidth < 16 ? cellWidth : Math.max(16, 0.72 * cellWidth), Math.min(22, 320 / rows));
  const height = Math.min(wanted, TALLEST_CELL * typeScale(), TALLEST_MAP / rows);
  return height >= SEPARATE ? Math.floor(height) : height;
}

export function layOutMap(cells, width, family) {
  const largest = 12.5 * typeScale();
  const longest = { left: Math.min(130, width * 0.3), top: 110 };
  let size = largest;
  let layout;
  // Small cells need small labels, and small labels leave room for larger cells: settle in two rounds.
  for (let round = 0; round < 2; round += 1) {
    const queries = fitLabels(cells.queries, family, size, longest.left);
    const keys = fitLabels(cells.keys, family, size, longest.top);
    const left = Math.ceil(queries.widest) + 10;
    let cellWidth = leaningCell(keys, left, width);
    const leaning = cellWidth >= size * 1.35;
    if (!leaning) cellWidth = Math.min(LARGEST_CELL * typeScale(), (width - left - 1) / cells.columns);
    if (cellWidth >= SEPARATE) cellWidth = Math.floor(cellWidth);
    const cellHeight = heightFor(cellWidth, cells.rows);
    const top = Math.ceil(leaning ? (keys.widest + size) * SLANT : keys.widest) + 8;
    layout = { kind: "map", left, top, cellWidth, cellHeight, leaning, size, queries, keys };
    size = Math.max(9, Math.min(largest, Math.min(cellWidth, cellHeight) * 0.95));
  }
  const { left, top, cellWidth, cellHeight } = layout;
  const pitch = layout.size * 0.85;
  return {
    ...layout,
    width,
    height: Math.ceil(top + cellHeight * cells.rows) + 4,
    right: left + cellWidth * cells.columns,
    bottom: top + cellHeight * cells.rows,
    everyRow: Math.max(1, Math.ceil(pitch / cellHeight)),
    everyColumn: Math.max(1, Math.ceil(pitch / cellWidth)),
    gap: Math.min(cellWidth, cellHeight) >= SEPARATE ? 1 : 0,
  };
}

/** What lies under a point, in bins: a cell, a query's label (column null), a key's label (row null), or nothing. */
export function hitMap(layout, cells, x, y) {
  const row = Math.floor((y - layout.top) / layout.cellHeight);
  if (y < layout.top) {
    const foot = layout.leaning ? x - (layout.top - y) : x;
    const column = Math.floor((foot - layout.left) / layout.cellWidth);
    return column >= 0 && column < cells.columns ? { row: null, column, by: "key" } : null;
  }
  if (row >= cells.rows || x > layout.right) return null;
  if (x < layout.left) return { row, column: null, by: "query" };
  const column = Math.min(cells.columns - 1, Math.floor((x - layout.left) / layout.cellWidth));
  return { row, column, by: "query" };
}

const SKIPPED = "#8a9094"; // the colour of a key that was not chosen
const SKIPPED_PIXEL = 0xff94908a; // the same, alpha, blue, green and red
const MAX_BOXES = 10000; // more cells than this are drawn as one image

/** A stroke through a cell whose key was not chosen: another mark than its grey, which some palettes have. */
function strike(context, x, y, width, height) {
  context.beginPath();
  context.moveTo(x, y + height);
  context.lineTo(x + width, y);
  context.strokeStyle = "#ffffff";
  context.lineWidth = 1;
  context.stroke();
}

/** The cells, with a hair of paper between them where they are large enough. */
export function drawCells(context, cells, layout, paint) {
  const { left, top, cellWidth, cellHeight, gap } = layout;
  if (gap && cells.rows * cells.columns <= MAX_BOXES) {
    for (let row = 0; row < cells.rows; row += 1) {
      for (let column = 0; column < cells.columns; column += 1) {
        const [x, y, width, height] = [left + column * cellWidth, top + row * cellHeight, cellWidth - gap, cellHeight - gap];
        context.fillStyle = cells.skipped(row, column) ? SKIPPED : paint.css(paint.step(cells.weight(row, column)));
        context.fillRect(x, y, width, height);
        if (cells.skipped(row, column)) strike(context, x, y, width, height);
      }
    }
    return;
  }
  const ratio = window.devicePixelRatio || 1;
  const size = (length) => Math.max(1, Math.round(length * ratio));
  const [width, height] = [cellWidth * cells.columns, cellHeight * cells.rows];
  const image = rasterise(cells, paint.palette, paint.step, size(width), size(height), 0, cells.chooses ? SKIPPED_PIXEL : null);
  context.imageSmoothingEnabled = false;
  context.drawImage(onCanvas(image), left, top, width, height);
}

/** Which labels to write: every n-th, and the ones pointed at in place of their neighbours. */
function labelsToWrite(count, every, marked) {
  const wanted = new Set(marked);
  for (let i = 0; i < count; i += every) {
    if (marked.every((at) => at === i || Math.abs(at - i) >= every)) wanted.add(i);
  }
  return wanted;
}

/** Labels, and outlines of the pinned and pointed rows and columns: lists of {at, strong}, in bins. */
export function drawMarks(context, layout, theme, rows, columns) {
  const { left, top, right, bottom, cellWidth, cellHeight, size, gap } = layout;
  const marked = (marks) => marks.map((mark) => mark.at);
  const write = (text, bold, colour) => {
    context.font = `${bold ? "bold " : ""}${size}px ${theme.font}`;
    context.fillStyle = colour;
    context.fillText(text, 0, 0);
  };
  context.textBaseline = "middle";
  context.direction = "ltr";

  context.textAlign = "right";
  for (const row of labelsToWrite(layout.queries.count, layout.everyRow, marked(rows))) {
    context.save();
    context.translate(left - 7, top + (row + 0.5) * cellHeight - gap / 2);
    write(layout.queries.label(row).text, marked(rows).includes(row), theme.queries);
    context.restore();
  }

  context.textAlign = "left";
  for (const column of labelsToWrite(layout.keys.count, layout.everyColumn, marked(columns))) {
    context.save();
    context.translate(left + (column + 0.5) * cellWidth - gap / 2, top - 6);
    context.rotate(layout.leaning ? -Math.PI / 4 : -Math.PI / 2);
    write(layout.keys.label(column).text, marked(columns).includes(column), theme.keys);
    context.restore();
  }

  // Around small cells the outline steps back, so as not to cover what it points at.
  const back = Math.min(cellWidth, cellHeight) < SEPARATE ? 1 : gap / 2;
  const outline = (x, y, width, height, strong) => {
    context.strokeStyle = theme.mark;
    context.lineWidth = strong ? 2.25 : 1.5;
    context.strokeRect(x - back, y - back, width + 2 * back - gap, height + 2 * back - gap);
  };
  for (const { at, strong } of rows) outline(left, top + at * cellHeight, right - left, cellHeight, strong);
  for (const { at, strong } of columns) outline(left + at * cellWidth, top, cellWidth, bottom - top, strong);
}

export const MAX_LINKS = 20000;
const BENT_LINKS = 4000; // more than this are drawn straight, which is faster and looks the same
const LINE = { tallest: 26, least: 9 };

export function layOutLinks(cells, width, family) {
  const size = 12.5;
  const longest = Math.min(170, width * 0.32);
  const queries = fitLabels(cells.queries, family, size, longest);
  const keys = fitLabels(cells.keys, family, size, longest);
  const most = Math.max(cells.rows, cells.columns);
  const pitch = Math.min(LINE.tallest, TALLEST_MAP / most);
  const height = Math.ceil(pitch * most) + 8;
  const left = Math.ceil(queries.widest) + 12;
  const right = width - Math.ceil(keys.widest) - 12;
  // The shorter side stands in the middle of the taller.
  const start = (count) => 4 + (pitch * (most - count)) / 2;
  return {
    kind: "links", width, height, left, right, pitch, queries, keys,
    size: Math.max(LINE.least, Math.min(size, pitch * 0.9)),
    top: { query: start(cells.rows), key: start(cells.columns) },
    every: Math.max(1, Math.ceil((LINE.least * 1.1) / pitch)),
  };
}

const heightOf = (layout, axis, bin) => layout.top[axis] + (bin + 0.5) * layout.pitch;

/** The links of some heads' cells that a rule lets through, weakest first: {row, column, weight, head}. */
export function findLinks(layers, rule) {
  const links = [];
  const value = Number(rule.slice(1));
  layers.forEach((cells, head) => {
    for (let row = 0; row < cells.rows; row += 1) {
      const from = row * cells.columns;
      let least = value;
      if (rule[0] === "k") {
        const sizes = Array.from(cells.values.subarray(from, from + cells.columns), Math.abs).sort((a, b) => b - a);
        least = sizes[Math.min(value, sizes.length) - 1] ?? Infinity;
      }
      for (let column = 0; column < cells.columns; column += 1) {
        const weight = cells.values[from + column];
        if (weight !== 0 && Math.abs(weight) >= least) links.push({ row, column, weight, head });
      }
    }
  });
  links.sort((a, b) => Math.abs(a.weight) - Math.abs(b.weight));
  return links.length > MAX_LINKS ? links.slice(-MAX_LINKS) : links;
}

/** Draw links; `shown(link)` says which. */
export function drawLinks(context, /** @type {View} */ view, plot, shown = (/** @type {Link} */ _link) => true) {
  const { layout, links, cells } = plot;
  const [from, to] = [layout.left, layout.right];
  const bend = (to - from) * 0.4;
  const bent = links.length <= BENT_LINKS;
  context.lineCap = "round";
  for (const link of links) {
    if (!shown(link)) continue;
    const strength = Math.min(1, Math.abs(link.weight));
    context.strokeStyle = linkColour(view, cells, link);
    context.globalAlpha = 0.12 + 0.88 * strength;
    context.lineWidth = 0.6 + 3.4 * strength;
    const [y, toY] = [heightOf(layout, "query", link.row), heightOf(layout, "key", link.column)];
    context.beginPath();
    context.moveTo(from, y);
    if (bent) context.bezierCurveTo(from + bend, y, to - bend, toY, to, toY);
    else context.lineTo(to, toY);
    context.stroke();
  }
  context.globalAlpha = 1;
}

function linkColour(/** @type {View} */ view, cells, { weight, head }) {
  if (cells.signed) return weight > 0 ? (view.dark ? "#ff8f7a" : "#b2182b") : view.dark ? "#7db8ea" : "#2166ac";
  return view.theme.heads[head % view.theme.heads.length];
}

/** The tokens of both sides; those pointed at or pinned are bold. */
export function drawLinkLabels(context, plot, theme, rows, columns) {
  const { layout } = plot;
  const side = (axis, labels, marks, x, align, colour) => {
    const marked = marks.map((mark) => mark.at);
    context.textAlign = align;
    context.textBaseline = "middle";
    context.direction = "ltr";
    for (const bin of labelsToWrite(labels.count, layout.every, marked)) {
      context.font = `${marked.includes(bin) ? "bold " : ""}${layout.size}px ${theme.font}`;
      context.fillStyle = colour;
      context.fillText(labels.label(bin).text, x, heightOf(layout, axis, bin));
    }
  };
  side("query", layout.queries, rows, layout.left - 7, "right", theme.queries);
  side("key", layout.keys, columns, layout.right + 7, "left", theme.keys);
}

/** The token on whose side and height a point lies, in bins, or null. */
export function hitLinks(layout, cells, x, y) {
  const axis = x < (layout.left + layout.right) / 2 ? "query" : "key";
  const bin = Math.floor((y - layout.top[axis]) / layout.pitch);
  if (bin < 0 || bin >= (axis === "query" ? cells.rows : cells.columns)) return null;
  return axis === "query" ? { row: bin, column: null, by: "query" } : { row: null, column: bin, by: "key" };
}
