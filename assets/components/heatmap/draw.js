// Painting: cells and axes once, the outline of the cell pointed at again at every move.

import { sizeCanvas } from "../shared/canvas.js";
import { FONT, labelled, shortened } from "./layout.js";
import { rasterise } from "./raster.js";

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
  // Light on dark, so that it is seen on every colour.
  for (const name of lit) {
    const { x, y, width, height } = bandOf(layout, shown, map.header.parts[name]);
    for (const [colour, line] of [["#000000", 5], ["#ffffff", 2]]) {
      Object.assign(context, { strokeStyle: colour, lineWidth: line });
      context.strokeRect(x, y, width, height);
    }
  }
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

/** The colour scale, named at its ends. */
export function drawScale({ parts, map }) {
  const { colours, low, high, language } = map.header;
  parts.bar.style.background = `linear-gradient(to right, ${colours.join(", ")})`;
  const ends = new Intl.NumberFormat(language, { maximumFractionDigits: 2 });
  parts.low.textContent = ends.format(low).replace("-", "−");
  parts.high.textContent = ends.format(high).replace("-", "−");
}
