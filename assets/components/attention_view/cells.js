// Maps as Python sent them or combined from heads that have arrived, and the cells of a plot: exact values where they
// have arrived, else thumbnails.

import { chosenHeads, comparedWith, groupOf, partOf, pictureOf, weightOf, writeHeads } from "./store.js";
import { asFirst, axesOf, joinSides, makeSide, matchSides, subtractMatched } from "./tokens.js";

/** A map's name within a request (viz_core/view/requests.py). */
export const mapName = ({ input, group, heads, how, unit }) => `${input}.${group}:${writeHeads(heads)}:${how}:${unit}`;

const MAX_DERIVED = 24;

/** All cells of a short map as float32, or null until they are here. */
function wholeMap(/** @type {View} */ view, source) {
  const { store } = view;
  const name = mapName(source);
  const sent = store.parts.get(`map ${name}`);
  if (sent) return sent.values;
  if (store.derived.has(name)) return store.derived.get(name);
  const maps = source.heads.map(
    (head) => store.parts.get(`map ${mapName({ ...source, heads: [head], how: "mean", unit: "tokens" })}`)?.values,
  );
  if (!maps.length || maps.includes(undefined)) return partOf(view, `map ${name}`)?.values ?? null;
  const group = groupOf(view, source.input, source.group);
  let values = combineMaps(maps, source.how);
  if (source.unit === "words") values = mergeWords(values, group.query_words ?? group.query_tokens.map((_, i) => i), group.key_words ?? group.key_tokens.map((_, i) => i));
  store.derived.set(name, values);
  if (store.derived.size > MAX_DERIVED) store.derived.delete(store.derived.keys().next().value);
  return values;
}

/** Heads as one map: the mean weight or the largest (viz_core.maps.measures.combine_heads). */
export function combineMaps(maps, how) {
  if (maps.length === 1) return maps[0];
  const out = new Float32Array(maps[0].length);
  for (let i = 0; i < out.length; i += 1) {
    let folded = 0;
    for (const map of maps) folded = how === "max" ? Math.max(folded, map[i]) : folded + map[i];
    out[i] = how === "max" ? folded : folded / maps.length;
  }
  return out;
}

/** Tokens to the words of these numbers: rows averaged, columns summed (viz_core.maps.word_maps.merge_words). */
export function mergeWords(values, rowOf, columnOf) {
  const [rows, columns] = [rowOf.at(-1) + 1, columnOf.at(-1) + 1];
  const sums = new Float64Array(rows * columns);
  const sizes = new Uint32Array(rows);
  rowOf.forEach((row, i) => {
    sizes[row] += 1;
    for (let j = 0; j < columnOf.length; j += 1) sums[row * columns + columnOf[j]] += values[i * columnOf.length + j];
  });
  return Float32Array.from(sums, (sum, i) => sum / sizes[Math.floor(i / columns)]);
}

const TILE = 64; // cells on a side of a tile, as in viz_core/view/computed_maps.py
const MAX_CELLS = 256; // on a side of a long map: more tokens become one cell together
export const UNKNOWN = 0;
const ROUGH = 1;
export const EXACT = 2;

/** What the open head's plot shows. @returns {Source} */
export function openSource(/** @type {View} */ view) {
  const { group, display } = view.state;
  return { input: 0, group, heads: chosenHeads(view), how: display.how, unit: display.unit };
}

/** What it is compared with, or null. @returns {Source | null} */
export function otherSource(/** @type {View} */ view) {
  const other = comparedWith(view);
  if (!other) return null;
  const { input, layer, head } = other;
  return { input, group: view.state.group, heads: [[layer, head]], how: "mean", unit: view.state.display.unit };
}

/** The window of a map, no larger than it, and how many tokens become one cell. */
export function windowOf(/** @type {View} */ view, axes, zoom) {
  const fit = (start, length, count) => {
    const size = Math.max(1, Math.min(length, count));
    return [Math.max(0, Math.min(start, count - size)), size];
  };
  const [row, rows] = zoom ? fit(zoom.row, zoom.rows, axes.query.count) : [0, axes.query.count];
  const [column, columns] = zoom ? fit(zoom.column, zoom.columns, axes.key.count) : [0, axes.key.count];
  return { row, rows, column, columns };
}

/**
 * The cells of a window: {rows, columns, values, grades, queries, keys, weight(row, column), write(row, column)}.
 * Grades say how well each is known: EXACT, ROUGH (8 bits, or the largest of several), UNKNOWN.
 */
export function cellsOf(/** @type {View} */ view, source, zoom) {
  const group = groupOf(view, source.input, source.group);
  const axes = axesOf(view, source.input);
  const shown = windowOf(view, axes, zoom);
  const level = (length) => (group.exact ? 0 : Math.max(0, Math.ceil(Math.log2(length / MAX_CELLS))));
  const levels = [level(shown.rows), level(shown.columns)];
  const queries = makeSide(axes.query, shown.row, shown.rows, 2 ** levels[0], view.words);
  const keys = makeSide(axes.key, shown.column, shown.columns, 2 ** levels[1], view.words);
  const cells = {
    rows: queries.count, columns: keys.count, queries, keys, input: source.input,
    signed: source.heads.some(([layer]) => group.layers[layer]?.signed),
    chooses: source.heads.length === 1 && source.unit === "tokens" && Boolean(group.layers[source.heads[0][0]]?.chooses),
    values: new Float32Array(queries.count * keys.count),
    grades: new Uint8Array(queries.count * keys.count),
  };
  if (group.exact) fillFromMap(view, source, cells, axes);
  else fillFromTiles(view, source, cells, levels);
  if (cells.grades.includes(UNKNOWN)) fillFromThumbnails(view, source, cells, group);
  return finishCells(view, cells);
}

export function finishCells(/** @type {View} */ view, cells) {
  const { columns, values, grades, queries, keys } = cells;
  cells.exact = !grades.some((grade) => grade !== EXACT);
  cells.weight = (row, column) => values[row * columns + column];
  // A key that an indexer has not chosen has the weight -0.
  cells.skipped = (row, column) => Boolean(cells.chooses) && Object.is(cells.weight(row, column), -0);
  const pooled = queries.size > 1 || keys.size > 1;
  cells.write = (row, column) => {
    const weight = cells.weight(row, column);
    const grade = grades[row * columns + column];
    if (cells.skipped(row, column)) return view.words.text("not_chosen");
    if (cells.alone?.has(row)) return view.words.text("one_text_alone");
    if (cells.differs || (cells.signed && grade === EXACT)) return view.words.signed(weight);
    if (cells.signed) return view.words.text("about", { value: view.words.signed(weight) });
    if (grade === EXACT) return view.words.number(weight);
    // A byte was rounded to the nearest: half a step more bounds what it stands for.
    const bound = Math.min(1, ((Math.sqrt(weight) * 255 + 0.5) / 255) ** 2);
    return pooled ? view.words.text("at_most", { value: view.words.number(bound) }) : view.words.text("about", { value: view.words.number(weight) });
  };
  return cells;
}

function fillFromMap(/** @type {View} */ view, source, cells, axes) {
  const whole = wholeMap(view, source);
  if (!whole) return;
  const { rows, columns, values, queries, keys } = cells;
  for (let row = 0; row < rows; row += 1) {
    const from = (queries.from + row) * axes.key.count + keys.from;
    values.set(whole.subarray(from, from + columns), row * columns);
  }
  cells.grades.fill(EXACT);
}

function fillFromTiles(/** @type {View} */ view, source, cells, /** @type {number[]} */ [down, across]) {
  const { rows, columns, values, grades, queries, keys } = cells;
  const grade = down || across ? ROUGH : EXACT;
  const [top, left] = [queries.from >> down, keys.from >> across];
  for (let i = Math.floor(top / TILE); i * TILE < top + rows; i += 1) {
    for (let j = Math.floor(left / TILE); j * TILE < left + columns; j += 1) {
      const tile = partOf(view, `tile ${mapName(source)} ${down} ${across} ${i} ${j}`);
      if (!tile) continue;
      const [height, width] = tile.shape;
      for (let y = Math.max(0, top - i * TILE); y < Math.min(height, top + rows - i * TILE); y += 1) {
        for (let x = Math.max(0, left - j * TILE); x < Math.min(width, left + columns - j * TILE); x += 1) {
          const at = (y + i * TILE - top) * columns + x + j * TILE - left;
          const value = tile.values[y * width + x];
          values[at] = tile.kind === "exact" ? value : weightOf(value, tile.most);
          grades[at] = grade;
        }
      }
    }
  }
}

/** Until the numbers are here: what the thumbnails say of them. */
function fillFromThumbnails(/** @type {View} */ view, source, cells, group) {
  const pictures = source.heads.map(([layer, head]) => {
    const picture = pictureOf(view, source.input, source.group, layer, false);
    return picture && { ...picture, values: picture.of(head) };
  });
  if (pictures.includes(null) || !pictures.length) return;
  const { rows, columns, values, grades, queries, keys } = cells;
  const [height, width] = [pictures[0].rows, pictures[0].columns];
  const bin = (token, count, bins) => Math.min(bins - 1, Math.floor((token * bins) / count));
  const down = Array.from({ length: rows }, (_, row) => bin(queries.axis.first(queries.unit(row)), group.query_tokens.length, height));
  const right = Array.from({ length: columns }, (_, column) => bin(keys.axis.first(keys.unit(column)), group.key_tokens.length, width));
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const at = row * columns + column;
      if (grades[at] !== UNKNOWN) continue;
      let folded = 0;
      for (const picture of pictures) {
        const weight = weightOf(picture.values[down[row] * width + right[column]], picture.most);
        folded = source.how === "max" ? Math.max(folded, weight) : folded + weight / pictures.length;
      }
      values[at] = folded;
      grades[at] = ROUGH;
    }
  }
}

/** The first minus the second, cell by cell; of two texts by tokens that match. Null where they are not equally large. */
export function differenceOf(/** @type {View} */ view, first, second) {
  const sides = [first.queries, first.keys, second.queries, second.keys];
  if (first.input !== second.input && sides.every((side) => side.size === 1)) return matchedDifference(view, first, second);
  if (first.rows !== second.rows || first.columns !== second.columns) return null;
  const values = first.values.map((value, i) => value - second.values[i]);
  const grades = first.grades.map((grade, i) => Math.min(grade, second.grades[i]));
  return finishCells(view, { ...first, values, grades, signed: true, differs: true, chooses: false });
}

function matchedDifference(/** @type {View} */ view, first, second) {
  const rows = matchSides(first.queries, second.queries);
  const columns = matchSides(first.keys, second.keys);
  const sized = [first, second].map(({ values, columns: width }) => Object.assign(values.subarray(), { columns: width }));
  const { values, alone } = subtractMatched(...sized, rows, columns);
  const grade = first.exact && second.exact ? EXACT : ROUGH;
  const matched = {
    ...first, values, alone, chooses: false, grades: new Uint8Array(values.length).fill(grade), signed: true, differs: true, rows: rows.length, columns: columns.length,
    queries: joinSides(first.queries, second.queries, rows), keys: joinSides(first.keys, second.keys, columns),
  };
  return finishCells(view, matched);
}

/** The cells of a second text, whose tokens are known by their partners in the first. */
export function asSecond(first, second) {
  const side = (axis) => (first[axis].size === 1 && second[axis].size === 1 ? asFirst(first[axis], second[axis], matchSides(first[axis], second[axis])) : second[axis]);
  return { ...second, queries: side("queries"), keys: side("keys") };
}
