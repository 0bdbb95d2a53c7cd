// Which units (tokens or words) are pinned or hovered.

import { onPicture, pinsOf } from "./state.js";

/** The pinned units, all on one side: {axis, units} or null. */
export function pinnedUnits(view) {
  const pins = pinsOf(view);
  if (!pins.length) return null;
  const { axis } = pins[0];
  return { axis, units: [...new Set(pins.map(({ index }) => view.axes[axis].of(index)))] };
}

/** Whose attention is read while nothing is pointed at: what is pinned; over a picture else the class token, which comes first. */
export const restingUnits = (view) => pinnedUnits(view) ?? (onPicture(view) ? { axis: "query", units: [0] } : null);

/** The units whose attention is read on the sentence: the one pointed at, else the pinned ones. */
export function focusUnits(view) {
  const { cursor } = view;
  if (cursor) return { axis: cursor.by, units: [cursor.by === "query" ? cursor.row : cursor.column] };
  return restingUnits(view);
}

/** The pair under the pointer; a label alone is paired with what is pinned on the other side, if that is one. */
export function pointedPair(view) {
  if (!view.cursor) return null;
  const pinned = restingUnits(view);
  const pinnedUnit = (axis) => (pinned?.axis === axis && (pinned.units.length === 1 || onPicture(view)) ? pinned.units[0] : null);
  const row = view.cursor.row ?? pinnedUnit("query");
  const column = view.cursor.column ?? pinnedUnit("key");
  return row === null || column === null ? null : { row, column };
}
