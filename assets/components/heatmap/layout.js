// Where everything stands, in CSS pixels.

export const TALLEST = 390; // a picture and the controls over it are seen at once
const LARGEST_CELL = { width: 150, height: 22 };
export const FONT = 12;

/** Sizes of the cells of the part shown, and the space that labels and titles need around them. */
export function layOut(map, shown, width, tallest, measure) {
  const { row_labels: rowLabels, row_title: rowTitle, square } = map.header;
  const last = rowLabels ? rowLabels.map(shortened) : [String(map.rows - 1)];
  const left = Math.ceil(Math.max(...last.map(measure)) + 10 + (rowTitle ? FONT + 8 : 0));
  const [top, bottom, right] = [4, 2 * FONT + 18, 10];
  const room = Math.max(1, width - left - right);
  let cellWidth = Math.min(LARGEST_CELL.width, room / shown.columns);
  let cellHeight = Math.min(LARGEST_CELL.height * Math.max(1, tallest / TALLEST), tallest / shown.rows);
  if (square) cellWidth = cellHeight = Math.min(cellWidth, cellHeight);
  const mapWidth = cellWidth * shown.columns;
  const mapHeight = cellHeight * shown.rows;
  return {
    width, height: top + mapHeight + bottom, left, top, cellWidth, cellHeight,
    right: left + mapWidth, bottom: top + mapHeight,
  };
}

export const shortened = (text) => (text.length > 14 ? `${text.slice(0, 13)}…` : text);

/** Which of the cells from `first` on are labelled so that labels stay `gap` pixels apart: every 1st, 2nd, 5th, 10th... */
export function labelled(first, count, cellSize, gap) {
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
