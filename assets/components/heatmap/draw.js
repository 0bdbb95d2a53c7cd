// A heatmap's layout in CSS pixels, and its painting: cells and axes once, the outline of the cell pointed at again at
// every move. Bytes become exactly as many pixels as the screen has.

import { sizeCanvas } from "../shared/canvas.js";

export const TALLEST = 390; // a picture and the controls over it are seen at once
const LARGEST_CELL = { width: 150, height: 22 };
export const FONT = 12;
const CLOCKS = 30; // pixels over the columns of a sinusoidal table

/** Sizes of the cells of the part shown, and the space that labels and titles need around them. */
export function layOut(map, shown, width, tallest, measure) {
  const { row_labels: rowLabels, row_title: rowTitle, square } = map.header;
  const last = rowLabels ? rowLabels.map(shortened) : [String(map.rows - 1)];
  const left = Math.ceil(Math.max(...last.map(measure)) + 10 + (rowTitle ? FONT + 8 : 0));
  const clocks = map.frequencies ? CLOCKS : 0;
  const [top, bottom, right] = [4 + clocks, 2 * FONT + 18, 10];
  const room = Math.max(1, width - left - right);
  let cellWidth = Math.min(LARGEST_CELL.width, room / shown.columns);
  let cellHeight = Math.min(LARGEST_CELL.height * Math.max(1, tallest / TALLEST), (tallest - clocks) / shown.rows);
  if (square) cellWidth = cellHeight = Math.min(cellWidth, cellHeight);
  const mapWidth = cellWidth * shown.columns;
  const mapHeight = cellHeight * shown.rows;
  return {
    width, height: top + mapHeight + bottom, left, top, cellWidth, cellHeight,
    right: left + mapWidth, bottom: top + mapHeight,
  };
}

const shortened = (text) => (text.length > 14 ? `${text.slice(0, 13)}…` : text);

/** Which of the cells from `first` on are labelled so that labels stay `gap` pixels apart: every 1st, 2nd, 5th, 10th... */
function labelled(first, count, cellSize, gap) {
  let step = 1;
  for (let i = 0; step * cellSize < gap; i += 1) step = [1, 2, 5][i % 3] * 10 ** Math.floor(i / 3);
  const start = Math.ceil(first / step) * step;
  return Array.from({ length: Math.max(0, Math.ceil((first + count - start) / step)) }, (_, i) => start + i * step);
}

/** The cell under a point of the stage; the nearest one where the point lies outside. */
export function cellAt(layout, shown, x, y) {
  const at = (offset, size, count) => Math.min(Math.max(Math.floor(offset / size), 0), count - 1);
  return {
    row: shown.row + at(y - layout.top, layout.cellHeight, shown.rows),
    column: shown.column + at(x - layout.left, layout.cellWidth, shown.columns),
  };
}

export const isInside = (layout, x, y) => x >= layout.left && x < layout.right && y >= layout.top && y < layout.bottom;

/**
 * A part of a map as an image of width x height. Larger than the part it repeats cells; smaller,
 * a pixel is the mean of the cells under it, so that what is too fine to be seen fades instead of
 * turning into patterns that are not there.
 */
function rasterise({ pixels, columns }, shown, palette, width, height) {
  const image = new ImageData(width, height);
  const out = new Uint32Array(image.data.buffer);
  const down = cuts(shown.rows, height);
  const across = cuts(shown.columns, width);
  const line = new Float64Array(shown.columns);
  for (let y = 0; y < height; y += 1) {
    const top = down[y];
    const bottom = Math.max(top + 1, down[y + 1]);
    if (y && top === down[y - 1] && bottom === Math.max(top + 1, down[y])) {
      out.copyWithin(y * width, (y - 1) * width, y * width);
      continue;
    }
    line.fill(0);
    for (let row = top; row < bottom; row += 1) {
      const from = (shown.row + row) * columns + shown.column;
      for (let column = 0; column < line.length; column += 1) line[column] += pixels[from + column];
    }
    for (let x = 0; x < width; x += 1) {
      const left = across[x];
      const right = Math.max(left + 1, across[x + 1]);
      let sum = 0;
      for (let column = left; column < right; column += 1) sum += line[column];
      out[y * width + x] = palette[Math.round(sum / ((bottom - top) * (right - left)))];
    }
  }
  return image;
}

const cuts = (cells, size) => Array.from({ length: size + 1 }, (_, i) => Math.floor((i * cells) / size));

export function drawMap(view) {
  const { parts, map, window: shown, layout } = view;
  const context = sizeCanvas(parts.cells, layout.width, layout.height);
  const ratio = globalThis.devicePixelRatio || 1;
  const pixels = (length) => Math.max(1, Math.round(length * ratio));
  const { left, top, right, bottom } = layout;
  const image = rasterise(map, shown, view.palette, pixels(right - left), pixels(bottom - top));
  context.putImageData(image, Math.round(left * ratio), Math.round(top * ratio));
  drawAxes(context, view);
}

function drawAxes(context, { map, window: shown, layout, theme }) {
  const { header } = map;
  const { left, top, right, bottom, cellWidth, cellHeight } = layout;
  context.font = `${FONT}px ${theme.font}`;
  context.fillStyle = context.strokeStyle = theme.text;
  context.globalAlpha = 0.8;
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (const row of labelled(shown.row, shown.rows, cellHeight, header.row_labels ? FONT + 3 : 2 * FONT)) {
    const text = header.row_labels ? shortened(header.row_labels[row]) : String(row);
    context.fillText(text, left - 6, top + (row - shown.row + 0.5) * cellHeight);
  }
  context.textAlign = "center";
  for (const column of labelled(shown.column, shown.columns, cellWidth, 34)) {
    const x = left + (column - shown.column + 0.5) * cellWidth;
    context.fillText(String(column), x, bottom + FONT);
  }
  const middle = (left + Math.max(right, left + context.measureText(header.column_title).width)) / 2;
  context.fillText(header.column_title, middle, bottom + 2 * FONT + 8);
  if (!header.row_title) return;
  context.save();
  // A map of a row or two is lower than its title is long.
  const length = context.measureText(header.row_title).width;
  context.translate(FONT / 2 + 2, Math.max((top + bottom) / 2, length / 2 + 2));
  context.rotate(-Math.PI / 2);
  context.fillText(header.row_title, 0, 0);
  context.restore();
}

/** The cell pointed at, what the text points at and, while a mouse draws it, the part to enlarge. */
export function drawMarks(view) {
  const { parts, cursor, drag, layout, window: shown, theme, lit, map } = view;
  const context = sizeCanvas(parts.marks, layout.width, layout.height);
  context.strokeStyle = theme.text;
  context.lineWidth = 1.5;
  if (drag?.dragged) {
    const [x, y] = [Math.min(drag.x, drag.toX), Math.min(drag.y, drag.toY)];
    context.setLineDash([4, 3]);
    context.strokeRect(x, y, Math.abs(drag.toX - drag.x), Math.abs(drag.toY - drag.y));
  } else if (cursor) {
    const { x, y, width, height } = boxOf(layout, shown, cursor);
    context.strokeRect(x - 1, y - 1, width + 2, height + 2);
  }
  if (map.frequencies) drawClocks(context, view);
  // Light on dark, so that it is seen on every colour.
  for (const name of lit) {
    const { x, y, width, height } = bandOf(layout, shown, map.header.parts[name]);
    for (const [colour, line] of [["#000000", 5], ["#ffffff", 2]]) {
      Object.assign(context, { strokeStyle: colour, lineWidth: line });
      context.strokeRect(x, y, width, height);
    }
  }
}

/** Over each pair of columns its clock: sine and cosine of the row pointed at are across and up of its hand. */
function drawClocks(context, { map, layout, window: shown, cursor }) {
  const row = cursor?.row ?? shown.row;
  const [first, last] = [Math.ceil(shown.column / 2), Math.floor((shown.column + shown.columns) / 2) - 1];
  const radius = Math.min(CLOCKS - 6, Math.max(2 * layout.cellWidth - 3, 16)) / 2;
  const y = layout.top - CLOCKS / 2 - 2;
  for (const pair of labelled(first, Math.max(0, last - first + 1), 2 * layout.cellWidth, 2 * radius + 3)) {
    const x = layout.left + (2 * pair - shown.column + 1) * layout.cellWidth;
    context.globalAlpha = cursor ? 1 : 0.55;
    context.lineWidth = 1;
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.stroke();
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x + (radius - 2) * map.value(row, 2 * pair), y - (radius - 2) * map.value(row, 2 * pair + 1));
    context.stroke();
  }
  context.globalAlpha = 1;
}

/** The box of so many rows or columns side by side, a third of the way through what is shown. */
function bandOf({ left, top, right, bottom, cellWidth, cellHeight }, shown, { axis, count }) {
  const of = (first, length) => Math.max(0, Math.min(length - count, Math.floor((first + length / 3) / count) * count - first));
  if (axis === "row") return { x: left, y: top + of(shown.row, shown.rows) * cellHeight, width: right - left, height: Math.max(count * cellHeight, 4) };
  return { x: left + of(shown.column, shown.columns) * cellWidth, y: top, width: Math.max(count * cellWidth, 4), height: bottom - top };
}

/** Where a cell lies, drawn at least 4 pixels large so that it can be seen. */
export function boxOf({ left, top, cellWidth, cellHeight }, shown, { row, column }) {
  const [width, height] = [Math.max(cellWidth, 4), Math.max(cellHeight, 4)];
  const x = left + (column - shown.column + 0.5) * cellWidth - width / 2;
  const y = top + (row - shown.row + 0.5) * cellHeight - height / 2;
  return { x, y, width, height };
}

export function drawScale({ parts, map }) {
  const { colours, low, high, language } = map.header;
  parts.bar.style.background = `linear-gradient(to right, ${colours.join(", ")})`;
  const ends = new Intl.NumberFormat(language, { maximumFractionDigits: 2 });
  parts.low.textContent = ends.format(low).replace("-", "−");
  parts.high.textContent = ends.format(high).replace("-", "−");
}
