// Zoom and pan; mouse, touch and keys of a plot; keyboard shortcuts of the whole view.

import { isTypedIn } from "../shared/elements.js";
import { announce, openCell, pinnedUnits, pointAt, samePlace, togglePin, unpin } from "./actions.js";
import { windowOf } from "./cells.js";
import { stepHead } from "./heads.js";
import { moveOver, pinOver } from "./over_picture.js";
import { hitPlot } from "./plot.js";
import { onPicture, PAUSE, send, zoomOf } from "./store.js";

const LEAST_CELLS = 4; // on a side of the part shown
const DRAG = 6; // pixels a mouse moves before it means a part and not a cell

/** Show a part {row, column, rows, columns}, or with null all. The state keeps it once the reader pauses. */
export function zoomTo(/** @type {View} */ view, part) {
  if (onPicture(view)) return;
  const { query, key } = view.axes;
  const whole = !part || (part.rows >= query.count && part.columns >= key.count);
  let zoom = "whole";
  if (!whole) {
    const fit = (start, length, count) => {
      const size = Math.round(Math.max(Math.min(LEAST_CELLS, count), Math.min(length, count)));
      return [Math.round(Math.max(0, Math.min(start, count - size))), size];
    };
    const [row, rows] = fit(part.row, part.rows, query.count);
    const [column, columns] = fit(part.column, part.columns, key.count);
    zoom = [row, column, rows, columns].join(".");
  }
  if (zoom === view.state.display.zoom) return;
  view.state.display.zoom = zoom;
  cancelAnimationFrame(view.zooming);
  view.zooming = requestAnimationFrame(() => view.render());
  send(view, 2 * PAUSE);
}

const shownPart = (/** @type {View} */ view) => windowOf(view, view.axes, zoomOf(view));

/** Zoom by a factor (below 1 is nearer) around a unit of each side, which stays where it is on the screen. */
export function zoomBy(/** @type {View} */ view, factor, around = null, shown = shownPart(view)) {
  const row = around?.row ?? shown.row + shown.rows / 2;
  const column = around?.column ?? shown.column + shown.columns / 2;
  zoomTo(view, {
    rows: shown.rows * factor,
    columns: shown.columns * factor,
    row: row - (row - shown.row) * factor,
    column: column - (column - shown.column) * factor,
  });
}

function reveal(/** @type {View} */ view, { row, column }) {
  const shown = shownPart(view);
  const nearest = (at, start, length) => (at === null ? start : Math.min(Math.max(start, at - length + 1), at));
  zoomTo(view, { ...shown, row: nearest(row, shown.row, shown.rows), column: nearest(column, shown.column, shown.columns) });
}

/** Units of each side under a point, fractions included. */
function unitsAt({ cells, layout }, x, y) {
  if (layout.kind === "links") {
    const at = (axis, side) => side.from + ((y - layout.top[axis]) / layout.pitch) * side.size;
    return { row: at("query", cells.queries), column: at("key", cells.keys) };
  }
  return {
    row: cells.queries.from + ((y - layout.top) / layout.cellHeight) * cells.queries.size,
    column: cells.keys.from + ((x - layout.left) / layout.cellWidth) * cells.keys.size,
  };
}

/** The box a mouse draws on a whole map, or the way it moves an enlarged one. */
export function listenToZoom(/** @type {View} */ view, index) {
  const { stage, box } = view.stages[index];
  const fingers = new Map();
  const place = (event) => {
    const frame = stage.getBoundingClientRect();
    return { x: event.clientX - frame.left, y: event.clientY - frame.top };
  };
  let drag = null;
  const showBox = ({ x, y }) => {
    Object.assign(box.style, {
      left: `${Math.min(x, drag.x)}px`, top: `${Math.min(y, drag.y)}px`,
      width: `${Math.abs(x - drag.x)}px`, height: `${Math.abs(y - drag.y)}px`,
    });
    box.hidden = false;
  };
  stage.addEventListener("pointerdown", (event) => {
    const plot = view.plots[index];
    if (event.button !== 0 || onPicture(view)) return;
    if (event.pointerType === "touch") fingers.set(event.pointerId, place(event));
    const zoomed = view.state.display.zoom !== "whole";
    if (event.pointerType !== "touch" || zoomed) {
      drag = { ...place(event), id: event.pointerId, plot, pans: zoomed || plot.layout.kind === "links", shown: shownPart(view) };
    }
    if (fingers.size === 2) drag = pinchStart(view, plot, [...fingers.values()]);
  });
  stage.addEventListener("pointermove", (event) => {
    if (fingers.has(event.pointerId)) fingers.set(event.pointerId, place(event));
    if (!drag) return;
    const at = place(event);
    if (drag.pinch) {
      if (fingers.size === 2) pinchMove(view, drag, [...fingers.values()]);
      return;
    }
    if (!drag.active && Math.hypot(at.x - drag.x, at.y - drag.y) < DRAG) return;
    if (!drag.active) stage.setPointerCapture(drag.id);
    drag.active = true;
    if (!drag.pans) showBox(at);
    else if (view.state.display.zoom !== "whole") {
      const [from, to] = [unitsAt(drag.plot, drag.x, drag.y), unitsAt(drag.plot, at.x, at.y)];
      zoomTo(view, { ...drag.shown, row: drag.shown.row + from.row - to.row, column: drag.shown.column + from.column - to.column });
    }
  });
  const end = (event) => {
    fingers.delete(event.pointerId);
    if (!drag) return;
    box.hidden = true;
    // A click follows a drag: it must not pin what lies under its end.
    view.dragged = drag.active || Boolean(drag.pinch);
    if (drag.active && !drag.pans && event.type === "pointerup") {
      const at = place(event);
      const one = unitsAt(drag.plot, Math.min(drag.x, at.x), Math.min(drag.y, at.y));
      const two = unitsAt(drag.plot, Math.max(drag.x, at.x), Math.max(drag.y, at.y));
      const [row, column] = [Math.floor(one.row), Math.floor(one.column)];
      zoomTo(view, { row, column, rows: Math.ceil(two.row) - row, columns: Math.ceil(two.column) - column });
    }
    if (!fingers.size) drag = null;
  };
  stage.addEventListener("pointerup", end);
  stage.addEventListener("pointercancel", end);
  stage.addEventListener("dblclick", () => zoomTo(view, null));
  stage.addEventListener("wheel", (event) => {
    // The wheel alone scrolls the page; a pinch on a trackpad comes as a wheel with Ctrl.
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const at = place(event);
    zoomBy(view, Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.01), unitsAt(view.plots[index], at.x, at.y));
  }, { passive: false });
}

function pinchStart(/** @type {View} */ view, plot, /** @type {any[]} */ [one, two]) {
  const middle = { x: (one.x + two.x) / 2, y: (one.y + two.y) / 2 };
  return { pinch: Math.hypot(one.x - two.x, one.y - two.y) || 1, around: unitsAt(plot, middle.x, middle.y), shown: shownPart(view), pans: true };
}

function pinchMove(/** @type {View} */ view, { pinch, around, shown }, /** @type {any[]} */ [one, two]) {
  zoomBy(view, pinch / (Math.hypot(one.x - two.x, one.y - two.y) || 1), around, shown);
}

export function listenToPlot(/** @type {View} */ view, index) {
  const { stage } = view.stages[index];
  const hit = (event) => {
    const box = stage.getBoundingClientRect();
    return hitPlot(view.plots[index], event.clientX - box.left, event.clientY - box.top);
  };
  let touching = false;
  stage.addEventListener("pointerdown", (event) => {
    touching = event.pointerType === "touch";
    view.dragged = false;
  });
  stage.addEventListener("pointermove", (event) => {
    if (event.pointerType !== "touch") pointAt(view, hit(event));
  });
  stage.addEventListener("pointerleave", (event) => {
    if (event.pointerType !== "touch") pointAt(view, null);
  });
  stage.addEventListener("click", (event) => {
    const at = hit(event);
    if (!at || view.dragged) return;
    if (onPicture(view)) {
      pinOver(view, at, wantsMore(view, event));
      return;
    }
    // A finger has no hover: its tap points as well, and along a pinned row it reads cell after cell.
    const pinned = pinnedUnits(view);
    const reads = touching && !samePlace(at, view.cursor) && at.by === "query" && pinned?.axis === "query" && pinned.units.includes(at.row);
    if (touching) pointAt(view, at);
    openCell(view, at);
    if (!reads) togglePin(view, at.by, at.by === "query" ? at.row : at.column, wantsMore(view, event));
  });
  stage.addEventListener("blur", () => pointAt(view, null));
  stage.addEventListener("keydown", (event) => moveInPlot(view, event));
}

/** Whether a click adds to what is chosen. */
export const wantsMore = (/** @type {View} */ view, event) => view.several || event.shiftKey || event.ctrlKey || event.metaKey;

function moveInPlot(/** @type {View} */ view, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (onPicture(view)) {
    moveOver(view, event);
    return;
  }
  const { query, key } = view.axes;
  const shown = shownPart(view);
  const pinned = pinnedUnits(view);
  const pinnedUnit = (axis, first) => (pinned?.axis === axis ? pinned.units[0] : first);
  const row = view.cursor?.row ?? pinnedUnit("query", shown.row);
  const column = view.cursor?.column ?? pinnedUnit("key", shown.column);
  const { queries, keys } = view.plots[0].cells;
  const [down, right] = [queries.size * (event.shiftKey ? 10 : 1), keys.size * (event.shiftKey ? 10 : 1)];
  const place = {
    ArrowLeft: [row, column - right], ArrowRight: [row, column + right],
    ArrowUp: [row - down, column], ArrowDown: [row + down, column],
    Home: [row, 0], End: [row, key.count - 1],
    PageUp: [row - 10 * down, column], PageDown: [row + 10 * down, column],
  }[event.key];
  if (place) {
    const [toRow, toColumn] = view.cursor ? place : [row, column];
    const within = (at, count) => Math.max(0, Math.min(count - 1, at));
    const cursor = { row: within(toRow, query.count), column: within(toColumn, key.count), by: "query" };
    pointAt(view, cursor);
    reveal(view, cursor);
  } else if (event.key === "Enter" || event.key === " ") {
    pointAt(view, { row, column, by: "query" });
    openCell(view, { row, column });
    togglePin(view, "query", row, view.several || event.shiftKey);
  } else if (event.key === "+" || event.key === "=") zoomBy(view, 0.5, view.cursor);
  else if (event.key === "-") zoomBy(view, 2, view.cursor);
  else if (event.key === "0") zoomTo(view, null);
  else return;
  event.preventDefault();
  announce(view);
}

/** Listen to keys pressed in the view, and on the page where nothing else handles them. Returns a function that stops. */
export function listenToKeys(/** @type {View} */ view) {
  const { root } = view.parts;
  root.addEventListener("keydown", (event) => onKey(view, event));
  // In a notebook the page is not the view's: its cells have keys of their own.
  if (root.getRootNode().host?.dataset.lmSuppressShortcuts) return () => {};
  const onKeydown = (event) => {
    const path = event.composedPath();
    if (event.defaultPrevented || path.includes(root) || !root.clientWidth) return;
    if (!view.state || isTypedIn(event)) return;
    if (event.key !== "Escape") onKey(view, event);
  };
  document.addEventListener("keydown", onKeydown);
  return () => document.removeEventListener("keydown", onKeydown);
}

/** Focus a field to filter or find with, which a chapter's view folds away until then. */
function openField(/** @type {View} */ view, event, field) {
  event.preventDefault();
  view.unfolded = true;
  view.render();
  field.focus();
}

function onKey(/** @type {View} */ view, event) {
  // Many keyboards type brackets with AltGr, which some systems report as Ctrl as well.
  if (event.metaKey || (event.ctrlKey && !event.getModifierState("AltGraph"))) return;
  const { parts, state } = view;
  const steps = { "[": -1, "]": 1 }[event.key];
  if (steps) stepHead(view, steps);
  else if (event.key === "/") {
    openField(view, event, parts.filter);
  } else if (event.key === "f" && !onPicture(view)) {
    openField(view, event, parts.search);
  } else if (event.key !== "Escape") return;
  else if (parts.look.open || parts.exports.open) parts.look.open = parts.exports.open = false;
  else if (state.pins.length) unpin(view);
  else if (state.display.zoom !== "whole") zoomTo(view, null);
  else pointAt(view, null);
}
