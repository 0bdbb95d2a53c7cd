// Actions that change the state: each is rendered at once and sent to Python.

import { measuresOf } from "./measures.js";
import { announce } from "./pointer.js";
import { onPicture } from "./state.js";
import { send } from "./messages.js";

/** Open a head; pins stay while the tokens stay the same. */
export function openHead(view, { group, layer, head }, delay = 0) {
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

/** Change display options. */
export function setDisplay(view, changes, delay = 0) {
  Object.assign(view.state.display, changes);
  view.render();
  send(view, delay);
}

/** Pin a unit (token or word) of one side, or let it go; `more` adds it to those pinned already. */
export function togglePin(view, axis, unit, more) {
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
export function openCell(view, { row, column }) {
  const { query, key } = view.axes;
  if (row === null || column === null || row >= query.count || column >= key.count) return;
  view.clicks += 1;
  view.cell = { id: `${view.name}.${view.clicks}`, group: view.state.group, query: query.first(row), key: key.first(column) };
}

export function unpin(view) {
  view.state.pins = [];
  renderPinned(view);
  send(view);
}

/** Over a picture everything depends on the pinned tokens. */
const renderPinned = (view) => (onPicture(view) ? view.render() : view.renderHover());
