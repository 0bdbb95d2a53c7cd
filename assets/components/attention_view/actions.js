// What the reader points at and pins, in plots, as text and on the page, and the actions that change the state: each is
// rendered at once and sent to Python.

import { element } from "../shared/elements.js";
import { listenToTerms, markLit, pointAtTerms } from "../shared/terms.js";
import { measuresOf } from "./measures.js";
import { onPicture, openGroup, PAUSE, pinsOf, send } from "./store.js";

/** The pinned units, all on one side: {axis, units} or null. */
export function pinnedUnits(/** @type {View} */ view) {
  const pins = pinsOf(view);
  if (!pins.length) return null;
  const { axis } = pins[0];
  return { axis, units: [...new Set(pins.map(({ index }) => view.axes[axis].of(index)))] };
}

/** Whose attention is read while nothing is pointed at: what is pinned; over a picture else the class token, which comes first. */
export function restingUnits(/** @type {View} */ view) {
  const pinned = pinnedUnits(view);
  if (!onPicture(view)) return pinned;
  const hasPlace = pinned && (pinned.axis === "query" || openGroup(view).image.queries);
  return hasPlace ? pinned : { axis: "query", units: [0] };
}

/** The units whose attention is read on the sentence: the one pointed at, else the pinned ones. */
export function focusUnits(/** @type {View} */ view) {
  const { cursor } = view;
  if (cursor) return { axis: cursor.by, units: [cursor.by === "query" ? cursor.row : cursor.column] };
  return restingUnits(view);
}

/** The pair under the pointer; a label alone is paired with what is pinned on the other side, if that is one. */
export function pointedPair(/** @type {View} */ view) {
  if (!view.cursor) return null;
  const pinned = restingUnits(view);
  const pinnedUnit = (axis) => (pinned?.axis === axis && (pinned.units.length === 1 || onPicture(view)) ? pinned.units[0] : null);
  const row = view.cursor.row ?? pinnedUnit("query");
  const column = view.cursor.column ?? pinnedUnit("key");
  return row === null || column === null ? null : { row, column };
}

const OF_A_MAP = ["query", "key", "weight"];

const namesOf = (/** @type {View} */ view) => [...view.store.base.groups[0].map(({ id }) => id), "head", ...(onPicture(view) ? ["patch"] : OF_A_MAP)];

/** Light what the text points at, and tell the text what the pointer or the focus is on; returns what ends it. */
export function listenToText(/** @type {View} */ view) {
  const { grid, tabs } = view.parts;
  for (const name of ["pointerover", "focusin"]) {
    grid.addEventListener(name, () => pointAtTerms(["head", view.state.group]));
    tabs.addEventListener(name, ({ target }) => pointAtTerms(target.id ? [target.id.slice("tab-".length)] : []));
  }
  for (const name of ["pointerleave", "focusout"]) for (const box of [grid, tabs]) box.addEventListener(name, () => pointAtTerms([]));
  for (const { stage } of view.stages) {
    stage.addEventListener("focus", () => pointAtTerms(partsAt(view, { row: 0, column: 0 })));
    stage.addEventListener("blur", () => pointAtTerms([]));
  }
  return listenToTerms((names) => view.state && highlight(view, names));
}

/** Tell the text what is pointed at in a map: a row, a column, or a cell in both. */
const tellText = (/** @type {View} */ view, cursor) => pointAtTerms(cursor ? partsAt(view, cursor) : []);

function partsAt(/** @type {View} */ view, { row, column }) {
  const inMap = [row !== null && "query", column !== null && "key", row !== null && column !== null && "weight"];
  return [view.state.group, ...(onPicture(view) ? ["patch"] : [...inMap.filter(Boolean), ...(row === null ? [] : [`row-${row}`])])];
}

function highlight(/** @type {View} */ view, names) {
  const { root, tabs, grid } = view.parts;
  if (!view.store.base || !view.state) return;
  const lit = namesOf(view).filter((name) => names.includes(name));
  for (const box of [root, root.getRootNode().host ?? root]) markLit(box, lit);
  for (const tab of tabs.children) markLit(tab, lit.filter((name) => tab.id === `tab-${name}`));
  markLit(grid, lit.filter((name) => name === "head"));
  for (const plot of view.plots) frameParts(plot, lit.filter((name) => name === "patch" || OF_A_MAP.includes(name)));
}

/** Frames around the labels of rows or columns, the cells, or all that is drawn. */
function frameParts({ stage, layout }, names) {
  for (const frame of stage.querySelectorAll(".lit")) frame.remove();
  for (const name of names) {
    const frame = element("div", "lit");
    const [left, top, right, bottom] = boxOf(layout, stage, name);
    Object.assign(frame.style, { left: `${left}px`, top: `${top}px`, width: `${right - left}px`, height: `${bottom - top}px` });
    stage.append(frame);
  }
}

function boxOf({ kind, left, top, right, bottom, height }, stage, name) {
  if (kind !== "map") return [0, 0, stage.clientWidth, height];
  return { query: [0, top, left, bottom], key: [left, 0, right, top], weight: [left, top, right, bottom] }[name];
}

/** Weights of the units in focus over the bins of the other side of a plot; several are combined. */
export function foldFocus(/** @type {View} */ view, cells, focus) {
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

/** The hovered or pinned units as [template, values] of a sentence, or null. @returns {[string, object] | null} */
export function describePointer(/** @type {View} */ view, cells = view.plots[0].cells) {
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
export function marksOf(/** @type {View} */ view, { cells }) {
  const pinned = pinnedUnits(view);
  const marks = (axis, side, pointed) => {
    const bins = pinned?.axis === axis ? [...new Set(pinned.units.map(side.binOf))].filter((bin) => bin !== null) : [];
    const at = side.binOf(pointed);
    return [...bins.map((bin) => ({ at: bin, strong: true })), ...(at === null || bins.includes(at) ? [] : [{ at, strong: false }])];
  };
  return { rows: marks("query", cells.queries, view.cursor?.row), columns: marks("key", cells.keys, view.cursor?.column) };
}

/** Point at {row, column, by} or at nothing. */
export function pointAt(/** @type {View} */ view, cursor) {
  if (samePlace(cursor, view.cursor)) return;
  view.cursor = cursor;
  tellText(view, cursor);
  view.renderHover();
}

export const samePlace = (a, b) => a?.row === b?.row && a?.column === b?.column && a?.by === b?.by;

/** Announce the open head and the hovered pair to screen readers (aria-live), after a pause. */
export function announce(/** @type {View} */ view) {
  clearTimeout(view.speaking);
  view.speaking = setTimeout(() => {
    const sentence = describePointer(view) ?? describeWhole(view);
    const { title } = view.plots[0];
    view.parts.live.textContent = view.words.text("announcement", { name: title, text: view.words.spoken(view.words.text(...sentence)) });
  }, PAUSE);
}

/** Summary of a map for screen readers: its size and strongest pair. @returns {[string, object]} */
function describeWhole(/** @type {View} */ view) {
  const { cells } = view.plots[0];
  const best = cells.values.reduce((found, value, i) => (Math.abs(value) > Math.abs(cells.values[found]) ? i : found), 0);
  const pair = pairWords(cells, { row: Math.floor(best / cells.columns), column: best % cells.columns });
  const size = { rows: view.words.tick(cells.queries.axis.count), columns: view.words.tick(cells.keys.axis.count) };
  return ["summary", { ...pair, ...size }];
}

/** Open a head; pins stay while the tokens stay the same. */
export function openHead(/** @type {View} */ view, { group, layer, head }, delay = 0) {
  const { state } = view;
  const otherGroup = group !== state.group;
  Object.assign(state, { group, layer, head });
  if (otherGroup) {
    Object.assign(state, { pins: [] });
    Object.assign(state.display, { zoom: "whole", heads: "one", other: "none", filter: "" });
    view.cursor = null;
    // What this kind of map is not measured by cannot order it.
    if (state.display.sort !== "changed" && !measuresOf(view).includes(state.display.sort)) state.display.sort = "layer";
  }
  view.render();
  announce(view);
  send(view, delay);
}

export function setDisplay(/** @type {View} */ view, changes, delay = 0) {
  Object.assign(view.state.display, changes);
  view.render();
  send(view, delay);
}

/** Pin a unit (token or word) of one side, or let it go; `more` adds it to those pinned already. */
export function togglePin(/** @type {View} */ view, axis, unit, more) {
  const side = view.axes[axis];
  if (unit >= side.count) return; // only the text that it is compared with has it
  const letter = axis === "query" ? "q" : "k";
  const pin = `${letter}${side.first(unit)}`;
  const here = (each) => each[0] === letter && side.of(Number(each.slice(1))) === unit;
  const others = view.state.pins.filter((each) => each[0] === letter && !here(each));
  const isPinned = view.state.pins.some(here);
  if (isPinned) view.state.pins = more ? others : [];
  else view.state.pins = more ? [...others, pin].slice(-64) : [pin];
  renderPinned(view);
  announce(view);
  send(view);
}

/** Record a clicked pair, whose score the page decomposes; it is sent with the next message. */
export function openCell(/** @type {View} */ view, { row, column }) {
  const { query, key } = view.axes;
  if (row === null || column === null || row >= query.count || column >= key.count) return;
  const { channel } = view;
  channel.clicks += 1;
  channel.cell = { id: `${channel.name}.${channel.clicks}`, group: view.state.group, query: query.first(row), key: key.first(column) };
}

export function unpin(/** @type {View} */ view) {
  view.state.pins = [];
  renderPinned(view);
  send(view);
}

/** Over a picture everything depends on the pinned tokens. */
const renderPinned = (/** @type {View} */ view) => (onPicture(view) ? view.render() : view.renderHover());
