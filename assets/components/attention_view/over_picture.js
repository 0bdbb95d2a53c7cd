// Attention of the pinned tokens over the picture whose patches the tokens are.

import { textWidth } from "../shared/canvas.js";
import { announce, pointAt, restingUnits, togglePin } from "./actions.js";
import { combineMaps, EXACT, finishCells, mapName, UNKNOWN } from "./cells.js";
import { onCanvas, paintOf } from "./colours.js";
import { SEPARATE } from "./map.js";
import { drawPoints, hitPoint, layOutQueries, pickQuery, pointsOver, strongestPoint } from "./points.js";
import { groupOf, openGroup, partOf } from "./store.js";
import { axesOf, makeSide } from "./tokens.js";

const LARGEST_PICTURE = 480;
const CHIP = { height: 24, swatch: 15, gap: 6 }; // of a token that has no place on the picture, above it
const FINE = 12; // smooth: so many pixels a side for every patch
const COVER = 0x80 << 24; // a colour hides half of the picture

/** What a token looks at in one head (or what looks at it), exact; null and wanted while it is not here. */
function weightsOfToken(/** @type {View} */ view, { input, group }, [layer, head], axis, unit) {
  const { query_tokens: queries, key_tokens: keys } = groupOf(view, input, group);
  const name = mapName({ input, group, heads: [[layer, head]], how: "mean", unit: "tokens" });
  const whole = view.store.parts.get(`map ${name}`)?.values;
  if (whole && axis === "query") return whole.subarray(unit * keys.length, (unit + 1) * keys.length);
  if (whole) return Float32Array.from(queries, (_, row) => whole[row * keys.length + unit]);
  const part = partOf(view, `token ${input} ${group} ${layer} ${axis[0]}${unit}`);
  return part && part.values.subarray(head * part.shape[1], (head + 1) * part.shape[1]);
}

/** The same of several heads combined and several tokens folded; null until all of it is here. */
function weightsOver(/** @type {View} */ view, source) {
  const { axis, units } = restingUnits(view);
  const found = units.map((unit) => source.heads.map((head) => weightsOfToken(view, source, head, axis, unit)));
  if (found.flat().includes(null)) return null;
  const share = view.state.display.fold === "sum" ? 1 : 1 / units.length;
  const rows = found.map((heads) => combineMaps(heads, source.how));
  return Float32Array.from(rows[0], (_, i) => rows.reduce((sum, row) => sum + share * row[i], 0));
}

/** Cells of one row (or column) in the form of a map's cells. */
export function cellsOver(/** @type {View} */ view, source) {
  const { axis, units } = restingUnits(view);
  const axes = axesOf(view, source.input);
  const { image } = groupOf(view, source.input, source.group);
  const first3 = units.slice(0, 3).map(axes[axis].nameInText).join(" + ");
  const name = () => (units.length > 3 ? `${first3} …` : first3);
  const first = () => units[0];
  const weights = weightsOver(view, source);
  const own = {
    axis: axes[axis], count: 1, size: 1, from: units[0], unit: first, last: first,
    name, nameInText: name,
    binOf: (unit) => (weights && units.includes(unit) ? 0 : null), // no text about weights that are not here yet
  };
  const other = axis === "query" ? "key" : "query";
  const far = makeSide(axes[other], 0, axes[other].count, 1, view.words);
  const shape = axis === "query" ? { rows: 1, columns: far.count, queries: own, keys: far } : { rows: far.count, columns: 1, queries: far, keys: own };
  const values = weights ?? new Float32Array(far.count);
  const grades = new Uint8Array(far.count).fill(weights ? EXACT : UNKNOWN);
  const points = image.levels.length ? pointsOver(view, source, units) : null;
  return finishCells(view, { ...shape, values, grades, signed: false, image, units, axis, points });
}

/** The largest weight on any patch, or of any point: the end of the colour scale. */
export const peakOf = ({ values, points, image: { special } }) =>
  (points ? strongestPoint(points) : values.subarray(special).reduce((most, value) => Math.max(most, Math.abs(value)), 0)) || 1;

/** The picture as a canvas, or null while it is not here. */
function imageOf(/** @type {View} */ view, input, group) {
  const part = partOf(view, `image ${input} ${group}`);
  if (!part) return null;
  if (!part.canvas) {
    const [height, width] = part.shape;
    const image = new ImageData(width, height);
    for (let i = 0; i < width * height; i += 1) {
      image.data.set(part.values.subarray(3 * i, 3 * i + 3), 4 * i);
      image.data[4 * i + 3] = 255;
    }
    part.canvas = onCanvas(image);
  }
  return part.canvas;
}

/** Where the picture and the tokens without a place go. */
export function layOutOver(cells, width, family) {
  const { grid: [rows, columns], special } = cells.image;
  const room = Math.min(width, LARGEST_PICTURE) - 2;
  const exact = Math.min(room / columns, LARGEST_PICTURE / rows);
  const cell = exact >= SEPARATE ? Math.floor(exact) : exact;
  const side = cells.axis === "query" ? cells.keys : cells.queries;
  const chips = [];
  let [x, y] = [1, 1];
  for (let token = 0; token < special; token += 1) {
    const text = side.name(token);
    const length = CHIP.swatch + CHIP.gap + textWidth(text, `bold 12.5px ${family}`) + 12;
    if (token && x + length > width) [x, y] = [1, y + CHIP.height + 4];
    chips.push({ x, y, width: length, height: CHIP.height, text });
    x += length + CHIP.gap;
  }
  const querying = cells.image.queries ? [] : layOutQueries(cells, width, family, special ? y + CHIP.height + 4 : 1);
  const under = Math.max(special ? y + CHIP.height + 8 : 1, ...querying.map((chip) => chip.y + chip.height + 8));
  const [left, top] = [1, under];
  return {
    kind: "picture", size: 12.5, left, top, rows, columns, special, chips, querying, levels: cells.image.levels, cellWidth: cell, cellHeight: cell,
    width, height: Math.ceil(top + cell * rows) + 2, right: left + cell * columns, bottom: top + cell * rows,
  };
}

/** The box of a token: its patch, or its chip. */
function placeOf(layout, token) {
  const { left, top, columns, special, chips, levels, cellWidth: width, cellHeight: height } = layout;
  if (token < special) return chips[token];
  let patch = token - special;
  if (levels.length) {
    const level = levels.findIndex(([down, across]) => patch < down * across || !(patch -= down * across, true));
    const [down, across] = levels[level];
    const [wide, high] = [(layout.right - left) / across, (layout.bottom - top) / down];
    return { x: left + (patch % across) * wide, y: top + Math.floor(patch / across) * high, width: wide, height: high };
  }
  return { x: left + (patch % columns) * width, y: top + Math.floor(patch / columns) * height, width, height };
}

/** The box of the token that a pair of bins looks at. */
export const farPlace = (layout, cells, { row, column }) => placeOf(layout, cells.axis === "query" ? column : row);

/** The token under a point, as the far side of the pair that is pointed at. */
export function hitOver(layout, cells, x, y) {
  const query = pickQuery(layout, x, y);
  if (query !== null) return { row: query, column: null, by: "query", isUnit: true };
  if (layout.levels.length) return cells.points && hitPoint(layout, cells, x, y);
  const inside = (box) => x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height;
  let token = layout.chips.findIndex(inside);
  if (token < 0) {
    const [row, column] = [Math.floor((y - layout.top) / layout.cellHeight), Math.floor((x - layout.left) / layout.cellWidth)];
    if (row < 0 || row >= layout.rows || column < 0 || column >= layout.columns) return null;
    token = layout.special + row * layout.columns + column;
  }
  return cells.axis === "query" ? { row: null, column: token, by: "key" } : { row: token, column: null, by: "query" };
}

/** Values between the middles of patches, as a straight line from one to the next. */
function between(values, rows, columns, y, x) {
  const at = (position, count) => {
    const from = Math.max(0, Math.min(count - 1, position));
    const low = Math.min(Math.floor(from), Math.max(0, count - 2));
    return [low, Math.min(low + 1, count - 1), from - low];
  };
  const [top, bottom, down] = at(y, rows);
  const [left, right, across] = at(x, columns);
  const line = (row) => (1 - across) * values[row * columns + left] + across * values[row * columns + right];
  return (1 - down) * line(top) + down * line(bottom);
}

/** The picture, and over it weights in colour: `values` of the patches alone, or null for the picture by itself. */
function paintField(context, image, [rows, columns], values, peak, paint, patches, { x, y, width, height }) {
  if (image) {
    context.imageSmoothingEnabled = image.width > width / 3;
    context.drawImage(image, x, y, width, height);
  }
  if (!values || patches === "off") return;
  const fine = patches === "smooth" ? FINE : 1;
  const field = new ImageData(columns * fine, rows * fine);
  const pixels = new Uint32Array(field.data.buffer);
  for (let row = 0, p = 0; row < rows * fine; row += 1) {
    for (let column = 0; column < columns * fine; column += 1, p += 1) {
      const value = fine === 1 ? values[row * columns + column] : between(values, rows, columns, (row + 0.5) / fine - 0.5, (column + 0.5) / fine - 0.5);
      pixels[p] = (paint.palette[paint.step(value / peak)] & 0xffffff) | COVER;
    }
  }
  context.imageSmoothingEnabled = fine > 1;
  context.drawImage(onCanvas(field), x, y, width, height);
}

/** The whole plot but for what follows the pointer. */
export function drawOver(context, /** @type {View} */ view, { source, cells, layout }) {
  const { special } = layout;
  const paint = paintOf(view, cells);
  const peak = peakOf(cells);
  const box = { x: layout.left, y: layout.top, width: layout.right - layout.left, height: layout.bottom - layout.top };
  const patches = cells.exact && !cells.image.levels.length ? cells.values.subarray(special) : null;
  paintField(context, imageOf(view, source.input, source.group), cells.image.grid, patches, peak, paint, view.state.display.patches, box);
  if (cells.points) drawPoints(context, cells.points, paint, peak, box);
  context.textAlign = "left";
  context.textBaseline = "middle";
  for (const chip of layout.querying) {
    context.font = `${layout.size}px ${view.theme.font}`;
    context.fillStyle = view.theme.text;
    context.fillText(chip.text, chip.x + 6, chip.y + chip.height / 2);
  }
  for (const [token, chip] of layout.chips.entries()) {
    const middle = chip.y + chip.height / 2;
    context.fillStyle = paint.css(paint.step(cells.values[token] / peak));
    context.fillRect(chip.x + 5, middle - CHIP.swatch / 2, CHIP.swatch, CHIP.swatch);
    context.font = `${layout.size}px ${view.theme.font}`;
    context.fillStyle = view.theme.text;
    context.fillText(chip.text, chip.x + 5 + CHIP.swatch + CHIP.gap, middle);
  }
}

/** Outlines: of the tokens read, and of the one under the pointer. */
export function drawOverMarks(context, /** @type {View} */ view, { cells, layout }) {
  const outline = ({ x, y, width: wide, height }, colour, width) => {
    for (const [stroke, line] of [[view.dark ? "#14181a" : "#ffffff", width + 2], [colour, width]]) {
      context.strokeStyle = stroke;
      context.lineWidth = line;
      context.strokeRect(x + 1, y + 1, wide - 2, height - 2);
    }
  };
  const [own, far] = cells.axis === "query" ? [view.theme.queries, view.theme.mark] : [view.theme.mark, view.theme.queries];
  const isForeign = !cells.image.queries;
  const count = cells.axis === "query" ? cells.columns : cells.rows;
  for (const chip of layout.querying) if (cells.units.includes(chip.query)) outline(chip, own, 2.5);
  for (const unit of isForeign ? [] : cells.units) if (unit < count) outline(placeOf(layout, unit), own, 2.5);
  const pointed = cells.axis === "query" ? view.cursor?.column : view.cursor?.row;
  const isOther = pointed !== null && pointed !== undefined && pointed < count && (isForeign || !cells.units.includes(pointed));
  if (isOther) outline(placeOf(layout, pointed), far, 2);
}

/** A head's thumbnail: the same over the same picture, as its own colours go. */
export function paintOverThumbnail(context, /** @type {View} */ view, layer, head, size) {
  const { group } = view.state;
  const source = { input: 0, group, heads: [[layer, head]], how: "mean" };
  const { grid: [rows, columns], special, levels } = openGroup(view).image;
  const points = levels.length ? pointsOver(view, source, restingUnits(view).units) : null;
  const weights = levels.length ? points : weightsOver(view, source);
  if (!weights) return false;
  const cell = size / Math.max(rows, columns);
  const [width, height] = [cell * columns, cell * rows];
  const box = { x: (size - width) / 2, y: (size - height) / 2, width, height };
  const { patches } = view.state.display;
  const image = imageOf(view, 0, group);
  const peak = peakOf({ values: weights, points, image: { special } });
  const seen = points ? null : weights.subarray(special);
  paintField(context, image, [rows, columns], seen, peak, view.paints.weights, patches === "off" ? "exact" : patches, box);
  if (points) drawPoints(context, points, view.paints.weights, peak, box);
  return true;
}

/** Read another token: pin it, or let it go, which brings back the class token. */
export function pinOver(/** @type {View} */ view, { row, column }, more) {
  const at = openGroup(view).image.queries ? column ?? row : row;
  if (at !== null && at !== undefined) togglePin(view, restingUnits(view).axis, at, more);
}

export function moveOver(/** @type {View} */ view, event) {
  const { layout, cells } = view.plots[0];
  const { special, rows, columns } = layout;
  const isForeign = !cells.image.queries;
  const query = cells.units[0] + ({ PageUp: -1, PageDown: 1 }[event.key] ?? 0);
  if (isForeign && query !== cells.units[0]) {
    if (query >= 0 && query < cells.queries.axis.count) togglePin(view, "query", query, false);
    event.preventDefault();
    return;
  }
  const token = (cells.axis === "query" ? view.cursor?.column : view.cursor?.row) ?? (isForeign ? 0 : cells.units[0]);
  const line = token < special ? 0 : Math.floor((token - special) / columns);
  const to = {
    ArrowLeft: token - 1, ArrowRight: token + 1,
    ArrowUp: token < special + columns ? Math.min(token, special - 1) : token - columns,
    ArrowDown: token < special ? special : token + columns,
    Home: special + line * columns, End: special + (line + 1) * columns - 1,
  }[event.key];
  const place = (at) => (cells.axis === "query" ? { row: null, column: at, by: "key" } : { row: at, column: null, by: "query" });
  if (to !== undefined) pointAt(view, place(to >= 0 && to < special + rows * columns ? to : token));
  else if (event.key === "Enter" || event.key === " ") pinOver(view, place(token), view.several || event.shiftKey);
  else return;
  event.preventDefault();
  announce(view);
}
