// A reader's guess, drawn by mouse, pen, finger or keys: levels from 0 to 99, sent to Python as two digits each.

import { hexOf, makePalette } from "../shared/canvas.js";
import { partsOf, stopWatching, viewComponent, watchWidth } from "../shared/mount.js";
import { bringIntoSight } from "../shared/sight.js";

// The layout of the board over a figure in CSS pixels, and the description of a point on it.

/** The position of each level as a share of the width, and the description of one level. */
function levelsOf({ kind, places, names, x, y, language }) {
  const weights = kind === "weights";
  const across = weights ? names.map((_, i) => (i + 0.5) / names.length) : places;
  const { format, comma } = numbersOf(language);
  const value = (level, [low, high]) => format(low + (level / TOP) * (high - low));

  const describe = (levels, at) => {
    if (kind === "star") return value(levels[0], x) + comma + value(levels[1], y);
    if (!weights) return `${format(x[0] + places[at] * (x[1] - x[0]))}: ${value(levels[at], y)}`;
    return `${names[at]}: ${percent(shares(levels)[at])}`;
  };
  return { across, describe };
}

/**
 * Edges of the drawing, from the plotly axes of its figure, with `levelsOf`; null until the figure is drawn.
 * Weights are horizontal bars there, the first on top, with levels to the right; or one row of cells.
 */
function layOver(data, figure, root) {
  const { xaxis, yaxis } = figure?._fullLayout ?? {};
  if (!xaxis?._length || !yaxis?._length) return null;
  const [place, here] = [figure.getBoundingClientRect(), root.getBoundingClientRect()];
  const scale = place.width / figure.offsetWidth || 1; // it is enlarged while it is presented
  const [across, up] = [xaxis, yaxis].map((axis) => (value) => scale * (axis._offset + axis.d2p(value)));
  const weights = data.kind === "weights";
  const turned = weights && !data.over.cells;
  const all = [-0.5, data.names.length - 0.5];
  const [left, right] = (turned ? [0, 1] : weights ? all : data.x).map(across);
  const [top, bottom] = (turned ? all : weights ? [-0.5, 0.5] : data.y.toReversed()).map(up);
  const [x, y] = [place.left - here.left, place.top - here.top];
  const { width, height } = place;
  return { ...levelsOf(data), x, y, width, height, left, right, top, bottom, turned };
}

/** Numbers with two decimals at most, and what is between coordinates: a comma unless the language has it in numbers. */
function numbersOf(language) {
  const locale = new Intl.NumberFormat(language, { maximumFractionDigits: 2 });
  return {
    format: (number) => locale.format(Math.round(number * 100) / 100 + 0).replace("-", "−"), // + 0: −0 is 0
    comma: locale.format(0.5).includes(",") ? "; " : ", ",
  };
}

function shares(levels) {
  const sum = levels.reduce((a, b) => a + b, 0);
  return levels.map((level) => (sum ? level / sum : 0));
}

const percent = (share) => `${Math.round(100 * share)}%`;

// What the reader drew, as SVG over a figure, which has its own axes, legend and answer.

const STRIP = 22; // what is left of a row of shaded cells beside the computed one
const VIRIDIS = makePalette(["#440154", "#3b528b", "#21918c", "#5ec962", "#fde725"]); // weights are shown in it everywhere

function drawBoard(view) {
  const { parts, data, layout } = view;
  const { paper } = parts;
  paper.setAttribute("height", layout.height);
  paper.replaceChildren();
  const put = (tag, attributes, text) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text !== undefined) node.textContent = text;
    paper.append(node);
  };
  const pen = { ...view, put, x: (share) => layout.left + share * (layout.right - layout.left) };
  pen.y = (level) => layout.bottom - (level / TOP) * (layout.bottom - layout.top);
  pen.focused = paper.matches(":focus-visible");
  const weights = data.over.cells ? drawCells : drawBars;
  const draw = { curve: drawCurve, weights, star: drawStar }[data.kind];
  draw(pen, { ...data, colour: "currentColor" });
  if (view.moved === null) return;
  const from = data.kind === "weights" ? shares(view.levels) : view.levels;
  const levels = from.map((level, i) => level + view.moved * (data.truth[i] - level));
  draw({ ...pen, levels }, { ...data, words: { ...data.words, yours: "" } });
}

function drawCurve(pen, data) {
  const { put, layout, x, y, levels, touched, at, focused } = pen;
  const { colour, truth, words } = data;
  const d = levels.map((level, i) => `${i ? "L" : "M"}${x(layout.across[i])} ${y(level)}`).join("");
  const dashed = touched ? {} : { "stroke-dasharray": "4 6", opacity: 0.6 };
  put("path", { d, fill: "none", stroke: colour, "stroke-width": 3, "stroke-linejoin": "round", ...dashed });
  if (truth) {
    const end = { x: layout.right, y: y(levels.at(-1)) - 8, "text-anchor": "end", style: `fill:${colour};opacity:1` };
    put("text", end, words.yours);
    return;
  }
  levels.forEach((level, i) => {
    const here = focused && i === at;
    put("circle", { class: "handle", cx: x(layout.across[i]), cy: y(level), r: here ? 8 : 5, fill: colour });
  });
}

function drawBars({ put, layout, levels, at, focused }, { colour, truth }) {
  const high = (layout.bottom - layout.top) / levels.length;
  const long = layout.right - layout.left;
  const parts = shares(levels);
  levels.forEach((level, i) => {
    const bar = { x: layout.left, y: layout.top + (i + 0.2) * high, height: 0.6 * high, rx: 3, fill: colour };
    const share = truth ? parts[i] : level / TOP; // only shares count, and once revealed they are what is shown
    if (!truth) put("rect", { ...bar, width: long, opacity: focused && i === at ? 0.25 : 0.1 });
    put("rect", { ...bar, width: share * long, stroke: colour, "stroke-width": 2, ...(truth ? { fill: "none" } : { opacity: 0.7 }) });
    const label = { x: layout.left + share * long - 6, y: bar.y + 0.3 * high + 4, "text-anchor": "end" };
    if (!truth && share * long > 40) put("text", { ...label, style: "fill:var(--st-background-color);opacity:1" }, percent(parts[i]));
  });
}

/** Weights in a figure's own row of cells: shaded from below, and once revealed a strip under the computed ones. */
function drawCells({ put, layout, levels, at, focused }, { colour, truth }) {
  const wide = (layout.right - layout.left) / levels.length;
  const high = layout.bottom - layout.top;
  const parts = shares(levels);
  levels.forEach((level, i) => {
    const full = truth ? STRIP : (level / TOP) * high;
    const cell = { x: layout.left + i * wide + 1, width: wide - 2 };
    if (!truth) put("rect", { ...cell, y: layout.top, height: high, fill: colour, opacity: focused && i === at ? 0.25 : 0.1 });
    put("rect", { ...cell, y: layout.bottom - full, height: full, fill: hexOf(VIRIDIS[Math.round(255 * parts[i])]) });
    const label = { x: cell.x + cell.width / 2, y: layout.bottom - 6, "text-anchor": "middle" };
    const ink = full < 18 ? "currentColor" : parts[i] > 0.6 ? "#000" : "#fff";
    put("text", { ...label, style: `fill:${ink};opacity:1` }, percent(parts[i]));
  });
}

function drawStar(pen, data) {
  const { put, x, y, levels, touched } = pen;
  const { colour, truth, words } = data;
  const [cx, cy] = [x(levels[0] / TOP), y(levels[1])];
  const corner = (i) => {
    const [r, turn] = [i % 2 ? 5 : 12, (i * Math.PI) / 5 - Math.PI / 2];
    return `${cx + r * Math.cos(turn)},${cy + r * Math.sin(turn)}`;
  };
  const points = Array.from({ length: 10 }, (_, i) => corner(i)).join(" ");
  put("polygon", { class: "handle", points, fill: colour, opacity: touched ? 1 : 0.5 });
  const below = { x: cx, y: cy + 24, "text-anchor": "middle", style: `fill:${colour};opacity:1` };
  if (truth) put("text", below, words.yours);
}

const TOP = 99;
const STEP = 3; // levels of a press of an arrow key
const FAR = 12; // with Shift
const MOVE = 1200; // ms from the guess to the truth
const BESIDES = 210; // px of a window for what is around a figure and the button that reveals
const POLL_INTERVAL = 150; // ms between checks of a figure that is drawn on: it loads late, moves and is zoomed

function createView(parent) {
  const view = { parts: partsOf(parent), levels: null, at: 0, touched: false, last: null, moved: null };
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
  const isNew = view.data && !view.data.truth && data.truth;
  view.seeks ??= !data.truth && Boolean(document.activeElement?.matches("[role=switch]")); // which began it
  view.data = data;
  if (data.guess) {
    view.levels = data.guess.match(/../g).map(Number);
    view.touched = true;
  }
  if (view.levels?.length !== count) {
    view.levels = Array(count).fill(data.kind === "weights" ? 0 : (TOP + 1) / 2);
    view.touched = false;
  }
  if (isNew) moveToTruth(view);
  render(view);
}

/** Move the guess to the truth, with the figure, which says how close it was, in sight. */
function moveToTruth(view) {
  const start = performance.now();
  const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const step = (now) => {
    const passed = isStill ? 1 : Math.min(1, (now - start) / MOVE);
    view.moved = passed < 1 && view.data?.truth ? passed * passed * (3 - 2 * passed) : null;
    render(view);
    if (view.moved !== null) requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
  const figure = document.querySelector(`.st-key-${CSS.escape(view.data.over.figure)}`);
  const { top, bottom } = figure?.getBoundingClientRect() ?? {};
  if (top < 0 || bottom > innerHeight) figure.scrollIntoView({ block: "center", behavior: isStill ? "auto" : "smooth" });
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
  parts.verdict.hidden = !data.truth || !view.layout;
  parts.verdict.textContent = data.verdict;
  parts.paper.setAttribute("aria-label", words.label);
  parts.paper.setAttribute("aria-valuenow", levels[data.kind === "star" ? 1 : view.at]);
  if (!view.layout) return;
  parts.paper.setAttribute("aria-valuetext", view.layout.describe(levels, view.at));
  if (view.seeks) seek(view);
}

/** Scroll to the figure and the button that reveals. */
function seek(view) {
  view.seeks = false;
  const { paper, reveal } = view.parts;
  const [{ top, bottom }, end] = [paper.getBoundingClientRect(), reveal.getBoundingClientRect().bottom];
  bringIntoSight(document.querySelector(`.st-key-${CSS.escape(view.data.over.figure)}`), top, Math.max(bottom, end));
}

function place(view) {
  const { x, y, width, height } = view.layout;
  const { root, reveal } = view.parts;
  root.classList.toggle("far", -y > innerHeight - BESIDES);
  Object.assign(reveal.style, { left: `${x}px`, top: `${y + height}px` });
  Object.assign(view.parts.paper.style, { left: `${x}px`, top: `${y}px`, width: `${width}px` });
  Object.assign(view.parts.verdict.style, { left: `${x}px`, top: `${y + height}px`, maxWidth: `${width}px` });
  drawBoard(view);
}

export default viewComponent(createView, (view, data, { setTriggerValue }) => {
  view.send = (guess) => setTriggerValue("guess", guess);
  receive(view, data);
}, closeView);
