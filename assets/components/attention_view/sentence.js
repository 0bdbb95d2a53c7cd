// What follows the pointer: outlines, the tooltip, and the sentence, shaded by the weights of the hovered or pinned tokens.

import { sizeCanvas } from "../shared/canvas.js";
import { element } from "../shared/elements.js";
import { announce, binsOf, describePointer, focusUnits, foldFocus, pairWords, pinnedUnits, pointAt, pointedPair, togglePin } from "./actions.js";
import { cellsOf, differenceOf, openSource, otherSource } from "./cells.js";
import { paintOf } from "./colours.js";
import { wantsMore } from "./gestures.js";
import { farPlace } from "./over_picture.js";
import { paintMarks } from "./plot.js";
import { onPicture, openGroup } from "./store.js";

const LONG_TOKEN = 18;
const MAX_FADING = 100; // tokens whose shade changes gradually: more would stutter
const MAX_READ = 512; // tokens of a side: more than that nobody reads as a sentence

/** The cells that are read on the sentence: all of a short map, else the part shown. */
function readingCells(/** @type {View} */ view) {
  const [plot] = view.plots;
  if (onPicture(view)) return plot.cells;
  if (view.state.display.zoom === "whole" || !openGroup(view).exact) return plot.cells;
  const cells = cellsOf(view, openSource(view), null);
  const other = plot.cells.differs && otherSource(view);
  return other ? differenceOf(view, cells, cellsOf(view, other, null)) : cells;
}

/** Buttons for the tokens or words; rebuilt only for others, so that focus stays. */
export function buildSentence(/** @type {View} */ view) {
  const group = openGroup(view);
  view.reading = readingCells(view);
  const { queries, keys } = view.reading;
  view.readable = !onPicture(view) && [queries, keys].every((side) => side.size === 1 && side.count <= MAX_READ);
  for (const [axis, line, side] of linesOf(view)) {
    line.hidden = !view.readable;
    if (!view.readable) continue;
    line.setAttribute("aria-label", axis === "query" ? group.queries_label : group.keys_label);
    const texts = Array.from({ length: side.count }, (_, bin) => side.name(bin));
    const shape = JSON.stringify([view.store.stamp, side.from, texts]);
    if (line.dataset.shape === shape) continue;
    line.dataset.shape = shape;
    line.classList.toggle("long", side.count > MAX_FADING);
    line.replaceChildren(
      ...texts.map((text, bin) => {
        const token = element("button", "token", { type: "button", "data-axis": axis, "data-index": side.unit(bin), tabindex: bin ? -1 : 0 }, text);
        if (text.length > LONG_TOKEN) token.title = text;
        return token;
      }),
    );
  }
}

/** @returns {[Axis, HTMLElement, Side][]} */
const linesOf = (/** @type {View} */ view) => [
  ["query", view.parts.queryLine, view.reading.queries],
  ["key", view.parts.keyLine, view.reading.keys],
];

function renderSentence(/** @type {View} */ view) {
  if (view.readable) {
    const focus = focusUnits(view);
    const pinned = pinnedUnits(view);
    const paint = paintOf(view, view.reading);
    const folded = focus && foldFocus(view, view.reading, focus);
    for (const [axis, line] of linesOf(view)) {
      const shaded = folded?.bins.length && focus.axis !== axis;
      [...line.children].forEach((button, bin) => {
        const unit = Number(button.dataset.index);
        const chosen = Boolean(focus?.axis === axis && focus.units.includes(unit));
        const pressed = Boolean(pinned?.axis === axis && pinned.units.includes(unit));
        const step = shaded && paint.step(folded.values[bin]);
        const [shade, ink] = shaded ? [paint.css(step), paint.ink(step)] : ["", ""];
        // Most tokens of a long sentence do not change; leaving them alone is what makes this fast.
        const appearance = `${chosen} ${pressed} ${shade}`;
        if (button.appearance === appearance) return;
        button.appearance = appearance;
        button.classList.toggle("chosen", chosen);
        button.setAttribute("aria-pressed", pressed);
        button.style.backgroundColor = shade;
        button.style.color = ink;
      });
    }
  }
  renderSentenceNote(view);
}

function renderSentenceNote(/** @type {View} */ view) {
  const { sentenceNote } = view.parts;
  if (!view.readable && !onPicture(view)) {
    sentenceNote.textContent = view.words.text("sentence_zoom");
    return;
  }
  const pinned = pinnedUnits(view);
  const notes = [];
  if (pinned) {
    const names = pinned.units.map(view.axes[pinned.axis].nameInText);
    const tokens = onPicture(view) ? names.join("; ") : view.words.row(names);
    notes.push(["pinned", { token: tokens.length > 80 ? `${tokens.slice(0, 79)}…` : tokens }]);
  }
  notes.push(describePointer(view, view.reading) ?? [view.several ? "sentence_several" : "sentence_hint", {}]);
  sentenceNote.replaceChildren(
    ...notes.flatMap(([name, values]) => {
      const note = element("span", "");
      view.words.into(note, name, values);
      return [note, " "];
    }),
  );
}

export function listenToSentence(/** @type {View} */ view) {
  const token = (event) => event.target.closest?.(".token");
  const place = ({ dataset: { axis, index } }) =>
    axis === "query" ? { row: Number(index), column: null, by: "query" } : { row: null, column: Number(index), by: "key" };
  for (const line of [view.parts.queryLine, view.parts.keyLine]) {
    line.addEventListener("pointerover", (event) => {
      if (event.pointerType !== "touch" && token(event)) pointAt(view, place(token(event)));
    });
    line.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "touch") pointAt(view, null);
    });
    line.addEventListener("focusin", (event) => {
      if (!event.target.matches(":focus-visible")) return;
      pointAt(view, place(event.target));
      announce(view);
    });
    line.addEventListener("focusout", () => pointAt(view, null));
    line.addEventListener("click", (event) => {
      if (!token(event)) return;
      const { axis, index } = token(event).dataset;
      togglePin(view, axis, Number(index), wantsMore(view, event));
    });
    line.addEventListener("keydown", (event) => moveInSentence(line, event));
  }
}

function moveInSentence(line, event) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const next = step && [...line.children][[...line.children].indexOf(event.target) + step];
  if (!next) return;
  event.preventDefault();
  event.target.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

export function renderHover(/** @type {View} */ view) {
  for (const plot of view.plots) {
    paintMarks(view, plot, sizeCanvas(plot.marks, plot.layout.width, plot.layout.height));
    placeTip(view, plot);
  }
  renderSentence(view);
  view.parts.unpin.hidden = !view.state.pins.length;
}

/** The tooltip beside its cell, kept inside the plot's width. */
function placeTip(/** @type {View} */ view, { cells, layout, tip, stage }) {
  const pair = binsOf(cells, pointedPair(view));
  tip.hidden = !pair || layout.kind === "links";
  if (tip.hidden) return;
  const names = pairWords(cells, pair);
  const words = element("span", "pair");
  view.words.into(words, "pair", names, "bdi");
  tip.replaceChildren(words, " ", element("b", "", {}, names.value));
  const cell = layout.kind === "picture" ? farPlace(layout, cells, pair) : cellPlace(layout, pair);
  const x = cell.x + 0.7 * cell.width;
  const below = cell.y + cell.height + 7;
  const above = cell.y - 7 - tip.offsetHeight;
  tip.style.left = `${Math.max(0, Math.min(x, stage.clientWidth - tip.offsetWidth))}px`;
  tip.style.top = `${below + tip.offsetHeight > layout.height + 24 ? above : below}px`;
}

const cellPlace = ({ left, top, cellWidth: width, cellHeight: height }, { row, column }) => ({ x: left + column * width, y: top + row * height, width, height });
