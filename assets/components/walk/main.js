// The walk: one forward pass of a model, played, stepped through, zoomed into and changed.

import { stageHeight } from "../shared/canvas.js";
import { fillIn } from "../shared/elements.js";
import { partsOf, stopWatching, viewComponent, watchWidth } from "../shared/mount.js";
import { drawWorld } from "./draw.js";
import { listen, listenToStage, readPlace, readWalk, writePlace } from "./input.js";
import { around, between, boxesOf, cellOf, ease, fit, layOut, limitOf as limitOfValues, numbersOf } from "./layout.js";
import { duration, findStep, openingOf, showWords, stepsOf } from "./say.js";

const MOVE = 700; // ms of a camera's move
const SAVE_AFTER = 400; // ms without a change, after which the place goes to the URL

function createView(parent) {
  const parts = partsOf(parent);
  const view = {
    parts, walk: null, blocks: new Map(), steps: [], index: 0, progress: 0, head: 0, row: 0, cell: null, hover: null,
    zoom: "stage", playing: false, speed: 1, camera: null, move: null,
  };
  Object.assign(view, {
    go: (index) => go(view, index),
    play: (on) => play(view, on),
    edit: (edit) => {
      clearTimeout(view.saving); // a message of the place would run with the text that an undo is about to replace
      view.send("edit", { edit, turn: Date.now() });
    },
    select: (row, column) => select(view, row, column),
    setHead: (head) => setHead(view, head),
    setZoom: (zoom) => { view.zoom = zoom; resize(view, view.camera); },
    pauseAt: (index) => { view.playing = false; go(view, index); },
    openBlock: (stack, block) => go(view, findStep(view.steps, { ...view.step, stack, block })),
    refresh: () => changed(view),
    rowIn: (box) => rowIn(view, box),
    titleOf: (box) => titleOf(view, box),
    limitOf: (box) => limitOf(view, box),
    say: (name, values) => fillIn(view.words[name] ?? "", values),
    schedule: () => schedule(view),
  });
  listen(view);
  watchWidth(view, () => resize(view));
  return view;
}

function closeView(view) {
  stopWatching(view);
  cancelAnimationFrame(view.tick);
  clearTimeout(view.saving);
  view.closed = true;
}

/** Take a walk with one block in full. The place stays while it can; what was seen of another pass is dropped. */
function receive(view, bytes) {
  const walk = readWalk(bytes);
  const first = !view.walk;
  if (walk.key !== view.walk?.key) view.blocks.clear();
  view.blocks.set(walk.block.join("."), walk);
  view.words = walk.words;
  const number = (digits) => new Intl.NumberFormat(walk.language, { minimumFractionDigits: digits, maximumFractionDigits: digits, signDisplay: "negative" });
  const formats = [0, 1, 2, 3].map(number);
  view.format = (value, digits) => formats[digits].format(value).replace("-", "−");
  const percent = new Intl.NumberFormat(walk.language, { style: "percent", maximumFractionDigits: 1 });
  view.percent = (share) => percent.format(share);
  if (walk.picture && view.image?.src !== walk.picture.source) {
    view.image = new Image();
    view.image.onload = () => view.schedule();
    view.image.src = walk.picture.source;
  }
  const known = view.step;
  const same = view.walk?.key === walk.key;
  const place = first ? readPlace(walk.state, walk.stacks[0].opens) : null;
  view.walk = same ? (view.blocks.get(`${known.stack}.${known.block}`) ?? view.walk) : walk;
  if (!same) {
    view.steps = stepsOf(walk);
    view.index = findStep(view.steps, place?.step ?? known ?? view.steps[0]);
    view.chosenHead ??= place?.head; // unless the reader chose one, each attention opens on its own
    view.row = Math.min(place?.row ?? (first ? firstRow(walk) : view.row), walk.stacks[walk.block[0]].tokens.length - 1);
    view.cell = place?.column === null || !place ? (first ? null : view.cell) : { row: view.row, column: place.column };
    view.zoom = place?.zoom ?? view.zoom;
    view.progress = place ? 1 : 0;
    view.paper = getComputedStyle(view.parts.root).getPropertyValue("--st-background-color") || "#fff";
    view.parts.root.classList.toggle("small", walk.small > 0);
    if (walk.small) { // a picture that plays: no keys of its own, so no stop for Tab
      view.parts.stage.setAttribute("role", "img");
      view.parts.stage.removeAttribute("tabindex");
    } else if (first) listenToStage(view);
    label(view);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (first && !place && !still) view.playing = true;
    if (first && walk.small && still) { // one picture has to do
      view.index = findStep(view.steps, { ...view.steps[0], stage: "softmax" });
      view.progress = 1;
    }
  }
  view.laidOut = ""; // boxes name arrays of the walk that was there before
  settle(view);
  resize(view);
}

/** Open the block of the current step, or ask for it. */
function settle(view) {
  view.step = view.steps[view.index];
  const { stack, block, attention } = view.step;
  view.head = Math.min(view.chosenHead ?? openingOf(view)[0], view.walk.attentions[0].heads - 1);
  const wanted = `${stack}.${block}`;
  const has = view.blocks.get(wanted);
  if (has) view.walk = has;
  const { given, kind } = view.walk;
  const writes = stack === view.walk.stacks.length - 1 && kind !== "picture";
  const { length } = view.walk.stacks[stack].tokens;
  const shown = writes ? Math.min(given + view.step.round, length) : length;
  const key = `${view.walk.key}.${wanted}.${view.head}.${shown}`;
  if (has ? view.laidOut !== key : !view.layout) {
    view.laidOut = has ? key : "";
    const own = view.walk.stacks[view.walk.block[0]].tokens.length; // until the block in question has come
    view.layout = layOut(view.walk, view.head, has ? shown : own);
  }
  view.waiting = !has;
  if (!has) ask(view, wanted);
  else {
    const next = view.steps.slice(view.index).find((step) => `${step.stack}.${step.block}` !== wanted);
    if (next && view.progress > 0.2) ask(view, `${next.stack}.${next.block}`); // before it is needed
  }
  // What follows is read off the class token, or the last word.
  if (["logits", "choice", "again"].includes(view.step.stage)) view.row = kind === "picture" ? 0 : shown - 1;
  view.row = Math.max(0, Math.min(view.row, shown - 1));
  const call = view.walk.attentions[attention];
  if (view.cell && call) view.cell = { row: view.row, column: Math.min(view.cell.column, (call.crosses ? call.columns : shown) - 1) };
  const mask = view.steps.findIndex((step) => step.stage === "mask" && !step.round
    && step.stack === stack && step.block === block && step.attention === attention);
  view.masked = view.index >= mask; // also without one
}

/** The last word that was given, or the class token. */
const firstRow = ({ kind, given, stacks }) => (kind === "picture" ? 0 : Math.min(given, stacks[0].tokens.length) - 1);

function ask(view, block) {
  if (view.blocks.has(block) || view.requested === block) return;
  view.requested = block;
  view.send("block", block);
}

function changed(view) {
  settle(view);
  aim(view);
  showWords(view);
  save(view);
  schedule(view);
}

function go(view, index) {
  view.index = Math.max(0, Math.min(view.steps.length - 1, index));
  view.progress = view.playing ? 0 : 1;
  if (view.zoom === "model" || view.zoom === "layer") view.zoom = "stage";
  changed(view);
}

function play(view, on) {
  view.playing = on;
  if (on && view.index === view.steps.length - 1 && view.progress >= 1) {
    view.index = 0;
    view.progress = 0;
  } else if (on && view.progress >= 1 && view.index < view.steps.length - 1) {
    view.index += 1;
    view.progress = 0;
  }
  view.last = null;
  changed(view);
}

function select(view, row, column) {
  view.row = row;
  view.cell = column === undefined ? null : { row, column };
  view.playing = false;
  view.progress = 1;
  changed(view);
}

function setHead(view, head) {
  const { heads } = view.walk.attentions[0];
  view.chosenHead = (head + heads) % heads;
  changed(view);
}

function target(view) {
  const { layout, step, zoom } = view;
  const [reads, fills] = boxesOf(step);
  if (zoom === "model" || step.stage === "again") return layout.whole;
  if (zoom === "layer") return { ...around(layout, [`block.${view.walk.block.join(".")}`]), unit: 0.01 };
  const matrix = layout.boxes.get(fills.find((id) => /^(scores|weights|outputs)/.test(id)));
  if (zoom === "stage" || !matrix) return around(layout, [...reads, ...fills]);
  const cell = cellOf(matrix, view.row, zoom === "cell" && matrix.columns ? (view.cell?.column ?? 0) : undefined);
  const room = zoom === "cell" ? 1.5 * cell.height : 1.2 * matrix.unit;
  const left = zoom === "row" ? 3.4 * matrix.unit : 0;
  const sides = { x: cell.x - room - left, y: cell.y - room, width: cell.width + 2 * room + left, height: cell.height + 2 * room };
  return { ...sides, unit: matrix.unit / (zoom === "cell" ? 2.5 : 1) };
}

function aim(view) {
  if (!view.width || !view.layout) return;
  const to = fit(target(view), view.width - 16, view.height - 16);
  if (!view.camera || matchMedia("(prefers-reduced-motion: reduce)").matches) {
    Object.assign(view, { camera: to, move: null });
    return;
  }
  if (view.move && same(view.move.to, to)) return;
  view.move = same(view.camera, to) ? null : { from: view.camera, to, start: performance.now() };
}

const same = (one, other) => Math.abs(one.x - other.x) + Math.abs(one.y - other.y) < 1e-3 && Math.abs(one.scale / other.scale - 1) < 1e-3;

function resize(view, from = null) {
  const { root, stage } = view.parts;
  view.width = root.clientWidth && stage.clientWidth;
  if (!view.walk || !view.width) return;
  const close = ["row", "cell"].includes(view.zoom); // the sums are below
  const high = view.walk.small || (close ? 260 : view.width < 600 ? 400 : 480);
  view.height = stageHeight(root) ? Math.max(260, stageHeight(root) - 300) : high;
  stage.style.height = `${view.height}px`;
  if (view.layout && !from) view.camera = fit(target(view), view.width - 16, view.height - 16);
  view.move = null;
  changed(view);
}

/** Draw soon; go on while something moves. */
function schedule(view) {
  if (view.tick || view.closed) return;
  view.tick = requestAnimationFrame((now) => {
    view.tick = 0;
    if (view.closed || !view.layout) return;
    advance(view, now);
    if (view.move) {
      const share = Math.min(1, (now - view.move.start) / MOVE);
      view.camera = between(view.move.from, view.move.to, ease(Math.max(0, share)));
      if (share >= 1) view.move = null;
    }
    drawWorld(view);
    if (view.playing || view.move) schedule(view);
  });
}

function advance(view, now) {
  const passed = Math.min(100, now - (view.last ?? now));
  view.last = now;
  if (!view.playing || view.waiting) return;
  view.progress += (passed * view.speed) / duration(view.step, view.walk.stacks[view.step.stack].opens);
  if (view.progress < 1) return;
  const end = view.index === view.steps.length - 1;
  if (end && !view.walk.small) {
    view.progress = 1;
    view.playing = false;
    showWords(view);
    save(view);
    return;
  }
  view.index = end ? 0 : view.index + 1;
  view.progress = 0;
  settle(view);
  aim(view);
  showWords(view);
}

function save(view) {
  if (view.playing || view.walk.small) return;
  clearTimeout(view.saving);
  view.saving = setTimeout(() => {
    const place = writePlace(view);
    if (place !== view.saved) view.send("place", (view.saved = place));
  }, SAVE_AFTER);
}

/** The row that is lit in a box: that of the query, or of the key in hand. */
function rowIn(view, box) {
  const hover = view.hover?.box === box.id ? view.hover : null;
  if (["keys", "values"].includes(box.kind)) return hover ? hover.row : (view.cell?.column ?? null);
  if (box.call && box.attention !== view.step.attention && view.step.attention !== undefined && !hover) return view.row;
  return hover ? hover.row : view.row;
}

function titleOf(view, box) {
  if (box.kind === "frame") return view.say("layer-title", { stack: view.words[view.walk.stacks[box.stack].name], layer: box.block + 1 });
  return view.words[`box-${box.name}`] ?? "";
}

const limits = new WeakMap();
function limitOf(view, box) {
  if (!limits.has(box)) limits.set(box, limitOfValues(numbersOf(view.walk, box).values));
  return limits.get(box);
}

function label(view) {
  const { parts, words } = view;
  const names = { back: "back", step: "step", layerDown: "layer-down", layerUp: "layer-up", headDown: "head-down", headUp: "head-up", out: "zoom-out", in: "zoom-in", time: "time" };
  for (const [part, name] of Object.entries(names)) {
    parts[part].setAttribute("aria-label", words[name]);
    parts[part].title = words[name];
  }
  parts.bar.setAttribute("aria-label", words.title);
}

export default viewComponent(createView, (view, data, component) => {
  view.send = (name, value) => (name === "place" || name === "block" ? component.setStateValue(name, value) : component.setTriggerValue(name, value));
  receive(view, data);
}, closeView);
