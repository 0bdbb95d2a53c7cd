// Rendering of what follows the pointer: outlines, tooltip, shaded sentence.

import { sizeCanvas } from "../shared/canvas.js";
import { element } from "../shared/elements.js";
import { pointedPair } from "./focus.js";
import { farPlace } from "./over_picture.js";
import { paintMarks } from "./plot.js";
import { binsOf, pairWords } from "./pointer.js";
import { renderSentence } from "./sentence.js";

/** Render everything that follows the pointer. */
export function renderHover(view) {
  for (const plot of view.plots) {
    paintMarks(view, plot, sizeCanvas(plot.marks, plot.layout.width, plot.layout.height));
    placeTip(view, plot);
  }
  renderSentence(view);
  view.parts.unpin.hidden = !view.state.pins.length;
}

/** The tooltip beside its cell, kept inside the plot's width. */
function placeTip(view, { cells, layout, tip, stage }) {
  const pair = binsOf(cells, pointedPair(view));
  tip.hidden = !pair || layout.kind === "links";
  if (tip.hidden) return;
  const names = pairWords(cells, pair);
  const words = element("span", "pair");
  view.words.into(words, "pair", names, "bdi");
  const value = element("b", "");
  value.textContent = names.value;
  tip.replaceChildren(words, " ", value);
  const cell = layout.kind === "picture" ? farPlace(layout, cells, pair) : cellPlace(layout, pair);
  const x = cell.x + 0.7 * cell.width;
  const below = cell.y + cell.height + 7;
  const above = cell.y - 7 - tip.offsetHeight;
  tip.style.left = `${Math.max(0, Math.min(x, stage.clientWidth - tip.offsetWidth))}px`;
  tip.style.top = `${below + tip.offsetHeight > layout.height + 24 ? above : below}px`;
}

/** The box of a cell of a map. */
const cellPlace = ({ left, top, cellWidth: width, cellHeight: height }, { row, column }) => ({ x: left + column * width, y: top + row * height, width, height });
