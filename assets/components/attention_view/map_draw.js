// Painting the opened map: cells once, labels and outlines again at every move of the pointer.

/** The cells, with a hair of paper between them where they are large enough. */
function drawCells(canvas, cells, layout, steps, paper) {
  const context = sizeCanvas(canvas, layout.width, layout.height);
  const { left, top, cellWidth, cellHeight, gap } = layout;
  if (gap) {
    for (let row = 0; row < cells.rows; row += 1) {
      for (let column = 0; column < cells.columns; column += 1) {
        context.fillStyle = paletteCss(steps(cells.weight(row, column)));
        context.fillRect(left + column * cellWidth, top + row * cellHeight, cellWidth - gap, cellHeight - gap);
      }
    }
    return;
  }
  const ratio = window.devicePixelRatio || 1;
  const size = (length) => Math.max(1, Math.round(length * ratio));
  const image = rasterise(cells, steps, size(cellWidth * cells.columns), size(cellHeight * cells.rows));
  context.putImageData(image, Math.round(left * ratio), Math.round(top * ratio));
}

/** Which labels to write: every n-th, and the ones pointed at in place of their neighbours. */
function labelsToWrite(count, every, marked) {
  const wanted = new Set(marked);
  for (let i = 0; i < count; i += every) {
    if (marked.every((at) => at === i || Math.abs(at - i) >= every)) wanted.add(i);
  }
  return wanted;
}

/**
 * Labels, outlines of the pinned and pointed row and column, and the cell where they meet.
 * `rows` and `columns` are lists of {at, strong}.
 */
function drawMarks(canvas, layout, theme, rows, columns) {
  const context = sizeCanvas(canvas, layout.width, layout.height);
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
  for (const row of labelsToWrite(layout.queries.length, layout.everyRow, marked(rows))) {
    context.save();
    context.translate(left - 7, top + (row + 0.5) * cellHeight - gap / 2);
    write(layout.queries[row].text, marked(rows).includes(row), theme.queries);
    context.restore();
  }

  context.textAlign = "left";
  for (const column of labelsToWrite(layout.keys.length, layout.everyColumn, marked(columns))) {
    context.save();
    context.translate(left + (column + 0.5) * cellWidth - gap / 2, top - 6);
    context.rotate(layout.leaning ? -Math.PI / 4 : -Math.PI / 2);
    write(layout.keys[column].text, marked(columns).includes(column), theme.keys);
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
