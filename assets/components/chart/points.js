// The parts of a chart by mouse, keys and text. Terms of the text name traces by their `meta`, both axes and the whole by
// the payload's parts. Points that can be clicked: up and down go to the next higher and lower one, Enter clicks it.

import { listenToTerms, markLit, pointAtTerms } from "../shared/terms.js";

const LABEL_DELAY = 100; // milliseconds; where keys come fast, plotly draws a label 50 after the last
const STEPS = { ArrowUp: 1, ArrowDown: -1 };

/** Points that can be clicked, the lowest first; those of equal height from left to right. */
function pointsOf({ parts, about }) {
  const traces = about?.clickable ? (parts.plot.data ?? []) : [];
  const points = traces.flatMap(({ type = "scatter", mode, x, y, customdata }, curve) =>
    type === "scatter" && mode?.includes("markers") && customdata
      ? Array.from(y, (height, index) => ({ curve, index, x: x[index], y: height, customdata: customdata[index] }))
      : [],
  );
  return points.filter((point) => Number.isFinite(point.x) && Number.isFinite(point.y)).sort((a, b) => a.y - b.y || a.x - b.x);
}

const hasPoints = (view) => pointsOf(view).length > 0;

export function listenForPoints(view) {
  const { root } = view.parts;
  root.addEventListener("keydown", (event) => press(view, event));
  root.addEventListener("focusout", () => leave(view));
}

function press(view, event) {
  const { root, plot } = view.parts;
  const step = STEPS[event.key];
  const points = event.target === root && (step || event.key === "Enter") ? pointsOf(view) : [];
  if (!points.length) return;
  const place = points.findIndex(({ curve, index }) => curve === view.at?.curve && index === view.at?.index);
  if (!step) {
    if (place < 0) return;
    event.preventDefault();
    view.sendClick(points[place]);
    return;
  }
  event.preventDefault();
  const next = place < 0 && step < 0 ? points.length - 1 : Math.min(Math.max(place + step, 0), points.length - 1);
  view.at = points[next];
  globalThis.Plotly.Fx.hover(plot, [{ curveNumber: view.at.curve, pointNumber: view.at.index }]);
  clearTimeout(view.announcing);
  view.announcing = setTimeout(() => announce(view), LABEL_DELAY);
}

/** Announce the label of the point that the keys are at. */
function announce({ at, parts: { plot, announcement } }) {
  const labels = at ? [...plot.querySelectorAll(".hoverlayer .hovertext text.nums")] : [];
  announcement.textContent = labels.map(linesOf).join("; ");
}

/** The lines of a label that plotly has drawn. */
const linesOf = (text) => {
  const lines = [...text.querySelectorAll("tspan.line")];
  return lines.length ? lines.map((line) => line.textContent).join(", ") : text.textContent;
};

function leave(view) {
  if (!view.at) return;
  view.at = null;
  view.parts.announcement.textContent = "";
  globalThis.Plotly?.Fx.unhover(view.parts.plot);
}

const DIMMED = 0.2; // opacity of traces that are not meant

const words = (text) => (typeof text === "string" && text ? text.split(" ") : []);
const axisNames = ({ about }) => ({ x: words(about?.parts?.x), y: words(about?.parts?.y) });
const wholeNames = ({ about }) => words(about?.parts?.whole);
const traceNames = (trace) => words(trace?.meta);

function namesOf(view) {
  const traces = (view.parts.plot.data ?? []).flatMap(traceNames);
  const { x, y } = axisNames(view);
  return [...new Set([...traces, ...x, ...y, ...wholeNames(view)])];
}

/** Light what the text points at, and tell the text what is pointed at here, by mouse or by keys. */
export function listenForParts(view, enqueue) {
  const { root } = view.parts;
  view.stopTerms = listenToTerms((names) => highlight(view, names, enqueue));
  root.addEventListener("pointermove", (event) => event.pointerType !== "touch" && pointFrom(view, [...axisAt(view, event), ...plotAt(view, event)]));
  root.addEventListener("pointerleave", () => {
    view.hovered = [];
    pointAtTerms([]);
  });
  root.addEventListener("focusin", () => pointAtTerms(namesOf(view)));
  root.addEventListener("focusout", () => pointAtTerms([]));
  root.addEventListener("keydown", (event) => step(view, event));
}

/** A trace pointed at; plotly has events once it has drawn. */
export function listenToTraces(view) {
  view.parts.plot.on("plotly_hover", ({ points }) => pointFrom(view, [], points.flatMap((point) => traceNames(point.data))));
  view.parts.plot.on("plotly_unhover", () => pointFrom(view, [], []));
}

function pointFrom(view, axis, hovered = view.hovered ?? []) {
  view.hovered = hovered;
  pointAtTerms([...new Set([...hovered, ...axis, ...wholeNames(view)])]);
}

/** The names of the axis whose labels are under the pointer. */
function axisAt(view, { clientX, clientY }) {
  for (const [axis, names] of Object.entries(axisNames(view))) {
    const box = names.length && view.parts.plot.querySelector(`.${axis}axislayer-above`)?.getBoundingClientRect();
    if (box && clientX >= box.left && clientX <= box.right && clientY >= box.top && clientY <= box.bottom) return names;
  }
  return [];
}

/** The names of the traces in the plot under the pointer, if all that have any have the same. */
function plotAt(view, { target }) {
  const { subplot } = target.dataset ?? {};
  const inside = (view.parts.plot.data ?? []).filter(({ xaxis = "x", yaxis = "y" }) => xaxis + yaxis === subplot);
  const metas = new Set(inside.filter((trace) => traceNames(trace).length).map(({ meta }) => meta));
  return metas.size === 1 ? words([...metas][0]) : [];
}

/** Left and right go from part to part. */
function step(view, event) {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const names = namesOf(view);
  if (event.target !== view.parts.root || !by || !names.length) return;
  event.preventDefault();
  view.place = ((view.place ?? (by > 0 ? -1 : 0)) + by + names.length) % names.length;
  pointAtTerms([names[view.place]]);
}

/** Where it has such parts, or points to click, it takes the focus. */
export function offerFocus(view) {
  const { root } = view.parts;
  if (namesOf(view).length || hasPoints(view)) root.tabIndex = 0;
  else root.removeAttribute("tabindex");
}

function highlight(view, names, enqueue) {
  view.lit = names.filter((name) => namesOf(view).includes(name));
  showLit(view, enqueue);
}

/** Show what is lit: axes and the whole by the style sheet, traces by the opacity of the others. */
export function showLit(view, enqueue) {
  const { root, plot } = view.parts;
  const lit = view.lit ?? [];
  const has = (names) => names.some((name) => lit.includes(name));
  const { x, y } = axisNames(view);
  markLit(root, lit);
  root.dataset.litPlaces = [has(x) && "x", has(y) && "y", has(wholeNames(view)) && "whole"].filter(Boolean).join(" ");
  if (!plot.data?.some((trace) => traceNames(trace).length) && !has(x) && !has(y) && !view.dimmed) return;
  enqueue(plot, () => dim(view, lit.length > 0 && !has(wholeNames(view)), lit));
}

async function dim(view, dimming, lit) {
  const { plot } = view.parts;
  if (!plot.data || (!dimming && !view.dimmed)) return;
  view.usual ??= plot.data.map(({ opacity }) => opacity ?? 1);
  const opacity = plot.data.map((trace, i) => {
    const meant = !dimming || traceNames(trace).some((name) => lit.includes(name));
    return meant ? view.usual[i] : DIMMED * view.usual[i];
  });
  view.dimmed = dimming;
  await globalThis.Plotly.restyle(plot, { opacity });
}
