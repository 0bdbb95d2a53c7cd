// Layout of a map: labels are measured and bounded, cells fill the rest.

import { typeScale } from "../shared/stage.js";
import { textWidth } from "../shared/text.js";
import { shorten } from "./words.js";

const LARGEST_CELL = 64;
const TALLEST_CELL = 44;
export const TALLEST_MAP = 640;
export const SEPARATE = 10; // cells from here on are whole pixels with a gap between them
const SLANT = Math.SQRT1_2; // keys lean at 45 degrees where cells are wide enough, else they stand upright
const MOST_MEASURED = 300; // labels: of more, every n-th is measured

/** The label of a bin, shortened to fit, and the widest of a side. */
export function fitLabels(side, family, size, width) {
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
  const every = Math.ceil(side.count / MOST_MEASURED);
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
