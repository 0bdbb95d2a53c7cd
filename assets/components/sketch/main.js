// A reader's guess, drawn by mouse, pen, finger or keys: levels from 0 to 99, sent to Python as two digits each.

import { mountView, partsOf, stopWatching, watchWidth } from "../shared/mount.js";
import { drawBoard } from "./board.js";
import { layOver } from "./layout.js";

const TOP = 99;
const STEP = 3; // levels of a press of an arrow key
const FAR = 12; // with Shift
const POLL_INTERVAL = 150; // ms between checks of a figure that is drawn on: it loads late, moves and is zoomed
const views = new WeakMap();

function createView(parent) {
  const view = { parts: partsOf(parent), levels: null, at: 0, touched: false, last: null };
  const { paper, reveal, again } = view.parts;
  paper.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || view.data.truth) return;
    paper.setPointerCapture(event.pointerId);
    view.last = null;
    view.drawing = true;
    drawTo(view, event);
  });
  paper.addEventListener("pointermove", (event) => view.drawing && drawTo(view, event));
  for (const name of ["pointerup", "pointercancel"]) paper.addEventListener(name, () => (view.drawing = false));
  paper.addEventListener("keydown", (event) => drawByKeys(view, event));
  for (const name of ["focus", "blur"]) paper.addEventListener(name, () => render(view));
  reveal.addEventListener("click", () => view.send(view.levels.map((level) => String(level).padStart(2, "0")).join("")));
  again.addEventListener("click", () => view.send(""));
  watchWidth(view, render);
  view.poll = setInterval(() => view.data && layoutKey(view) !== view.drawnLayout && render(view), POLL_INTERVAL);
  return view;
}

function closeView(view) {
  stopWatching(view);
  clearInterval(view.poll);
}

const overFigure = ({ data, parts }) =>
  layOver(data, document.querySelector(`.st-key-${CSS.escape(data.over.figure)} .js-plotly-plot`), parts.root);

const layoutKey = (view) => JSON.stringify(overFigure(view));

/** Take new data. A drawing that is not revealed yet is kept. */
function receive(view, data) {
  const count = data.kind === "star" ? 2 : data.kind === "weights" ? data.names.length : data.places.length;
  view.data = data;
  if (data.guess) {
    view.levels = data.guess.match(/../g).map(Number);
    view.touched = true;
  }
  if (view.levels?.length !== count) {
    view.levels = Array(count).fill(data.kind === "weights" ? 0 : (TOP + 1) / 2);
    view.touched = false;
  }
  render(view);
}

function drawTo(view, event) {
  const box = view.parts.paper.getBoundingClientRect();
  const { left, right, top, bottom, turned } = view.layout;
  const along = (event.clientX - box.left - left) / (right - left);
  const up = (bottom - (event.clientY - box.top)) / (bottom - top);
  const [across, level] = turned ? [1 - up, levelOf(TOP * along)] : [along, levelOf(TOP * up)];
  view.touched = true;
  if (view.data.kind === "star") view.levels = [levelOf(TOP * across), level];
  else {
    const at = nearest(view.layout.across, across);
    // A fast pointer skips places: draw those between as well.
    const { last } = view;
    for (let i = last ? Math.min(at, last.at) : at; i <= (last ? Math.max(at, last.at) : at); i += 1) {
      const share = last && at !== last.at ? (i - last.at) / (at - last.at) : 1;
      view.levels[i] = levelOf(last ? last.level + share * (level - last.level) : level);
    }
    view.at = at;
    view.last = { at, level };
  }
  render(view);
}

const levelOf = (number) => Math.round(Math.min(TOP, Math.max(0, number)));

const nearest = (places, place) =>
  places.reduce((best, each, i) => (Math.abs(each - place) < Math.abs(places[best] - place) ? i : best), 0);

function drawByKeys(view, event) {
  const { data, levels } = view;
  const step = event.shiftKey ? FAR : STEP;
  const pressed = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] ?? [];
  const [right, up] = view.layout?.turned ? [-pressed[1], pressed[0]] : pressed;
  if (pressed.length === 0 || event.ctrlKey || event.metaKey || event.altKey) return;
  if (data.kind === "star") move(0, right);
  else view.at = Math.min(levels.length - 1, Math.max(0, view.at + right));
  move(data.kind === "star" ? 1 : view.at, up);
  render(view);
  event.preventDefault();
  event.stopPropagation();

  function move(i, by) {
    if (!by || data.truth) return;
    levels[i] = levelOf(levels[i] + by * step);
    view.touched = true;
  }
}

function render(view) {
  const { parts, data, levels } = view;
  if (!data) return;
  view.width = parts.root.clientWidth;
  if (!view.width) return;
  view.layout = overFigure(view);
  view.drawnLayout = JSON.stringify(view.layout);
  parts.root.getRootNode().host.dataset.over = data.over.figure; // who presents it shows both
  parts.root.classList.toggle("revealed", Boolean(data.truth));
  parts.paper.style.visibility = view.layout ? "visible" : "hidden";
  if (view.layout) place(view);
  const { words } = data;
  parts.reveal.textContent = words.reveal;
  parts.again.textContent = words.again;
  parts.hint.textContent = words.hint;
  parts.reveal.disabled = !view.touched || (data.kind === "weights" && !levels.some(Boolean));
  parts.reveal.hidden = parts.hint.hidden = Boolean(data.truth);
  parts.again.hidden = !data.truth;
  parts.paper.setAttribute("aria-label", words.label);
  parts.paper.setAttribute("aria-valuenow", levels[data.kind === "star" ? 1 : view.at]);
  if (view.layout) parts.paper.setAttribute("aria-valuetext", view.layout.describe(levels, view.at));
}

function place(view) {
  const { x, y, width } = view.layout;
  Object.assign(view.parts.paper.style, { left: `${x}px`, top: `${y}px`, width: `${width}px` });
  drawBoard(view);
}

export default function (component) {
  const { data, setTriggerValue } = component;
  if (!data) return undefined;
  const { view, unmount } = mountView(views, component, createView, closeView);
  view.send = (guess) => setTriggerValue("guess", guess);
  receive(view, data);
  return unmount;
}
