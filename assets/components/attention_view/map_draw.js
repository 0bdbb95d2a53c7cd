// Painting a map on a canvas or as SVG: cells once, labels and outlines again on every pointer move.

import { SEPARATE } from "./map_layout.js";
import { onCanvas, rasterise } from "./raster.js";

const MOST_BOXES = 10000; // more cells than this are drawn as one image

/** The cells, with a hair of paper between them where they are large enough. */
export function drawCells(context, cells, layout, paint) {
  const { left, top, cellWidth, cellHeight, gap } = layout;
  if (gap && cells.rows * cells.columns <= MOST_BOXES) {
    for (let row = 0; row < cells.rows; row += 1) {
      for (let column = 0; column < cells.columns; column += 1) {
        context.fillStyle = paint.css(paint.step(cells.weight(row, column)));
        context.fillRect(left + column * cellWidth, top + row * cellHeight, cellWidth - gap, cellHeight - gap);
      }
    }
    return;
  }
  const ratio = window.devicePixelRatio || 1;
  const size = (length) => Math.max(1, Math.round(length * ratio));
  const [width, height] = [cellWidth * cells.columns, cellHeight * cells.rows];
  const image = rasterise(cells, paint.palette, paint.step, size(width), size(height));
  context.imageSmoothingEnabled = false;
  context.drawImage(onCanvas(image), left, top, width, height);
}

/** Which labels to write: every n-th, and the ones pointed at in place of their neighbours. */
export function labelsToWrite(count, every, marked) {
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
