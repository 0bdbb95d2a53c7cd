// Reading the state (viz_core/view/state.py): what is open, pinned, and the display options.

import { allHeads, groupOf, hasHead, openGroup } from "./store.js";

// Pause before keyboard moves are sent to Python or spoken, so that holding an arrow key stays quiet.
export const PAUSE = 250;

/** Heads the map combines: [layer, head] each. */
export function chosenHeads(view) {
  const { layer, head, display } = view.state;
  const group = openGroup(view);
  if (display.heads === "one") return [[layer, head]];
  if (display.heads === "all") return allHeads(group);
  if (display.heads === "layer") return allHeads(group).filter(([l]) => l === layer);
  return readHeads(display.heads).filter(([l, h]) => hasHead(group, l, h));
}

const readHeads = (text) => text.split("_").map((head) => head.split(".").map(Number));
export const writeHeads = (heads) => heads.map((head) => head.join(".")).join("_");

/** What the open head is compared with: {input, layer, head}, or null. */
export function comparedWith(view) {
  const { compare, other } = view.state.display;
  if (compare === "off") return null;
  if (other === "none") return null;
  const [input, layer, head] = other.split(".").map(Number);
  if (compare === "difference" && input && isBeside(view)) return null;
  const group = groupOf(view, input, view.state.group);
  return group && hasHead(group, layer, head) ? { input, layer, head } : null;
}

/** Whether the two inputs' maps of the open kind stand beside each other only, for their tokens are cut in other ways. */
export const isBeside = (view) => view.store.base.beside.includes(view.state.group);

/** The part of the map that is shown, in rows and columns of tokens or words; null for all of it. */
export function zoomOf(view) {
  const { zoom } = view.state.display;
  if (zoom === "whole") return null;
  const [row, column, rows, columns] = zoom.split(".").map(Number);
  return { row, column, rows, columns };
}

export const pinsOf = (view) => view.state.pins.map((pin) => ({ axis: pin[0] === "q" ? "query" : "key", index: Number(pin.slice(1)) }));

/** Whether attention lies over a picture. */
export const onPicture = (view) => view.state.display.mode === "picture" && Boolean(openGroup(view).seen);

/** By which rule a layer weighs keys; "" of signed maps from a file, which does not say. */
export function ruleOf(view, layer) {
  const { rule, signed } = openGroup(view).layers[layer];
  return rule || !signed ? view.words.text(rule || "rule_softmax") : "";
}

/** A head's name for people. */
export const headName = (view, { group, layer, head }) =>
  view.words.text("head_name", { layer: groupOf(view, 0, group).layers[layer].number, head: head + 1 });
