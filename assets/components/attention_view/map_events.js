// Mouse, touch and keyboard events of a plot.

import { pinnedUnits } from "./focus.js";
import { openCell, togglePin } from "./actions.js";
import { moveOver, pinOver } from "./over_picture.js";
import { hitPlot } from "./plot.js";
import { announce, pointAt, samePlace } from "./pointer.js";
import { onPicture } from "./state.js";
import { reveal, shownPart, zoomBy, zoomTo } from "./zoom.js";

export function listenToPlot(view, index) {
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
export const wantsMore = (view, event) => view.several || event.shiftKey || event.ctrlKey || event.metaKey;

function moveInPlot(view, event) {
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
