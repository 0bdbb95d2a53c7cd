// What terms of the page's text name here: the kinds of maps, the heads, rows, columns and weights of a map.

import { element } from "../shared/elements.js";
import { listenToTerms, markLit, pointAtTerms } from "../shared/terms.js";
import { onPicture } from "./state.js";

const OF_A_MAP = ["query", "key", "weight"];

/** Names of what a text can point at now. */
const namesOf = (view) => [...view.store.base.groups[0].map(({ id }) => id), "head", ...(onPicture(view) ? ["patch"] : OF_A_MAP)];

/** Light what the text points at, and tell the text what the pointer or the focus is on; returns what ends it. */
export function listenToText(view) {
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
  return listenToTerms((names) => highlight(view, names));
}

/** Tell the text what is pointed at in a map: a row, a column, or a cell in both. */
export const tellText = (view, cursor) => pointAtTerms(cursor ? partsAt(view, cursor) : []);

function partsAt(view, { row, column }) {
  const inMap = [row !== null && "query", column !== null && "key", row !== null && column !== null && "weight"];
  return [view.state.group, ...(onPicture(view) ? ["patch"] : inMap.filter(Boolean))];
}

function highlight(view, names) {
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
