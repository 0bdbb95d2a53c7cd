// The hovered and pinned units (tokens or words), in plots and as text.

import { focusUnits, pinnedUnits, pointedPair } from "./focus.js";
import { PAUSE } from "./state.js";
import { tellText } from "./terms.js";

/** Weights of the units in focus over the bins of the other side of a plot; several are combined. */
export function foldFocus(view, cells, focus) {
  const own = focus.axis === "query" ? cells.queries : cells.keys;
  const count = focus.axis === "query" ? cells.columns : cells.rows;
  const bins = [...new Set(focus.units.map(own.binOf))].filter((bin) => bin !== null);
  const values = new Float64Array(count);
  for (const bin of bins) {
    for (let i = 0; i < count; i += 1) {
      const weight = focus.axis === "query" ? cells.weight(bin, i) : cells.weight(i, bin);
      values[i] += view.state.display.fold === "sum" ? weight : weight / bins.length;
    }
  }
  return { values, bins };
}

/** The hovered or pinned units as [template, values] of a sentence, or null. */
export function describePointer(view, plot = view.plots[0]) {
  const { cells } = plot;
  const pair = binsOf(cells, pointedPair(view));
  if (pair) return [cells.differs ? "differs" : "looks_at", pairWords(cells, pair)];
  const focus = focusUnits(view);
  if (!focus) return null;
  const { values, bins } = foldFocus(view, cells, focus);
  if (!bins.length) return null;
  const [own, far] = focus.axis === "query" ? [cells.queries, cells.keys] : [cells.keys, cells.queries];
  const best = values.reduce((found, value, i) => (Math.abs(value) > Math.abs(values[found]) ? i : found), 0);
  const far_axis = focus.axis === "query" ? "key" : "query";
  if (bins.length > 1) {
    const name = `${view.state.display.fold}_${focus.axis === "query" ? "looks_most_at" : "looked_at_most_by"}`;
    const value = cells.signed ? view.words.signed(values[best]) : view.words.number(values[best]);
    return [name, { count: view.words.tick(bins.length), [far_axis]: far.nameInText(best), value }];
  }
  const [bin] = bins;
  if (!values[best] && !cells.signed) return [focus.axis === "query" ? "looks_at_nothing" : "looked_at_by_none", { [focus.axis]: own.nameInText(bin) }];
  const where = focus.axis === "query" ? { row: bin, column: best } : { row: best, column: bin };
  if (cells.differs) return ["differs_most", pairWords(cells, where)];
  return [focus.axis === "query" ? "looks_most_at" : "looked_at_most_by", pairWords(cells, where)];
}

export const pairWords = (cells, { row, column }) => ({
  query: cells.queries.nameInText(row),
  key: cells.keys.nameInText(column),
  value: cells.write(row, column),
});

/** A pair of units as bins of a plot, or null where they are not on the screen. */
export function binsOf(cells, pair) {
  const [row, column] = pair ? [cells.queries.binOf(pair.row), cells.keys.binOf(pair.column)] : [null, null];
  return row === null || column === null ? null : { row, column };
}

/** Rows and columns to mark in a plot: {at, strong} in bins; strong ones are pinned. */
export function marksOf(view, { cells }) {
  const pinned = pinnedUnits(view);
  const marks = (axis, side, pointed) => {
    const bins = pinned?.axis === axis ? [...new Set(pinned.units.map(side.binOf))].filter((bin) => bin !== null) : [];
    const at = side.binOf(pointed);
    return [...bins.map((bin) => ({ at: bin, strong: true })), ...(at === null || bins.includes(at) ? [] : [{ at, strong: false }])];
  };
  return { rows: marks("query", cells.queries, view.cursor?.row), columns: marks("key", cells.keys, view.cursor?.column) };
}

/** Point at {row, column, by} or at nothing. */
export function pointAt(view, cursor) {
  if (samePlace(cursor, view.cursor)) return;
  view.cursor = cursor;
  tellText(view, cursor);
  view.renderHover();
}

export const samePlace = (a, b) => a?.row === b?.row && a?.column === b?.column && a?.by === b?.by;

/** Announce the open head and the hovered pair to screen readers (aria-live), after a pause. */
export function announce(view) {
  clearTimeout(view.speaking);
  view.speaking = setTimeout(() => {
    const sentence = describePointer(view) ?? describeWhole(view);
    const { title } = view.plots[0];
    view.parts.live.textContent = view.words.text("announcement", { name: title, text: view.words.spoken(view.words.text(...sentence)) });
  }, PAUSE);
}

/** Summary of a map for screen readers: its size and strongest pair. */
function describeWhole(view) {
  const { cells } = view.plots[0];
  const best = cells.values.reduce((found, value, i) => (Math.abs(value) > Math.abs(cells.values[found]) ? i : found), 0);
  const pair = pairWords(cells, { row: Math.floor(best / cells.columns), column: best % cells.columns });
  const size = { rows: view.words.tick(cells.queries.axis.count), columns: view.words.tick(cells.keys.axis.count) };
  return ["summary", { ...pair, ...size }];
}
