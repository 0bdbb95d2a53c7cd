// One forward pass as Python describes it (ui/widgets/walk.py), the place in it as the URL holds it
// ("softmax.0.1.0.0~2~3~1~row"), and mouse, finger, keys and buttons that move it.

import { readFrame } from "../shared/mount.js";
import { numbersOf, projection } from "./layout.js";

const ZOOMS = ["model", "layer", "stage", "row", "cell"];

export function writePlace({ step, chosenHead, row, cell, zoom }) {
  const { stage, stack, block, attention, round } = step;
  return [[stage, stack, block, attention, round].join("."), chosenHead ?? "", row, cell ? cell.column : "", zoom].join("~");
}

/** The place that a text describes, without a number in block `opens`; what is malformed is left out. */
export function readPlace(text, opens) {
  const [step, head, row, column, zoom] = (text ?? "").split("~");
  const [stage, ...numbers] = (step ?? "").split(".");
  const [stack, block, attention, round] = numbers.map((each, i) => (/^\d{1,3}$/.test(each) ? Number(each) : i === 1 ? opens : 0));
  const number = (each) => (/^\d{1,3}$/.test(each ?? "") ? Number(each) : null);
  if (!stage || numbers.length !== 4) return null;
  return {
    step: { stage, stack, block, attention, round },
    head: number(head) ?? undefined,
    row: number(row),
    column: number(column),
    zoom: ZOOMS.includes(zoom) ? zoom : "stage",
  };
}

const SPEEDS = [0.5, 1, 2, 4];
const WHEEL_PAUSE = 350; // ms between two steps of a wheel

export function listen(view) {
  const { parts } = view;
  const on = (part, act) => parts[part].addEventListener("click", act);
  on("play", () => view.play(!view.playing));
  on("back", () => view.pauseAt(view.index - 1));
  on("step", () => view.pauseAt(view.index + 1));
  on("speed", () => {
    view.speed = SPEEDS[(SPEEDS.indexOf(view.speed) + 1) % SPEEDS.length];
    view.refresh();
  });
  on("layerDown", () => moveBlock(view, -1));
  on("layerUp", () => moveBlock(view, 1));
  on("headDown", () => view.setHead(view.head - 1));
  on("headUp", () => view.setHead(view.head + 1));
  on("out", () => zoomBy(view, -1));
  on("in", () => zoomBy(view, 1));
  parts.time.addEventListener("input", () => view.pauseAt(Number(parts.time.value)));
}

/** What is drawn answers to a mouse and to keys, but for a small picture, which only plays. */
export function listenToStage(view) {
  const { parts } = view;
  parts.stage.addEventListener("click", (event) => press(view, event));
  parts.stage.addEventListener("pointermove", (event) => event.pointerType === "mouse" && point(view, event));
  parts.stage.addEventListener("pointerleave", () => point(view, null));
  parts.stage.addEventListener("keydown", (event) => keys(view, event));
  parts.stage.addEventListener("wheel", (event) => wheel(view, event), { passive: false });
}

function zoomBy(view, by) {
  view.playing = false;
  view.progress = 1;
  const at = Math.max(0, Math.min(ZOOMS.length - 1, ZOOMS.indexOf(view.zoom) + by));
  if (ZOOMS[at] === "cell" && !view.cell) view.cell = { row: view.row, column: strongest(view) };
  view.setZoom(ZOOMS[at]);
}

/** The key with the largest weight in the row in hand. */
function strongest(view) {
  const box = view.layout.boxes.get(`weights.${view.step.attention}`);
  const { values, columns } = numbersOf(view.walk, box);
  const row = values.subarray(view.row * columns, view.row * columns + box.columns);
  return row.indexOf(Math.max(...row));
}

/** The same stage in the next block, through all stacks. */
function moveBlock(view, by) {
  const blocks = view.walk.stacks.flatMap(({ maps }, stack) => maps.map((_, block) => [stack, block]));
  const { stack, block } = view.step;
  const at = blocks.findIndex(([s, b]) => s === stack && b === block) + by;
  if (at < 0 || at >= blocks.length) return;
  view.playing = false;
  view.openBlock(...blocks[at]);
}

const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function keys(view, event) {
  const { key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (key === " ") view.play(!view.playing);
  else if (key === "+" || key === "=" || key === "Enter") zoomBy(view, 1);
  else if (key === "-" || key === "Escape") zoomBy(view, -1);
  else if (key === "." || key === "n") view.pauseAt(view.index + 1);
  else if (key === "," || key === "p") view.pauseAt(view.index - 1);
  else if (ARROWS[key]) {
    const [down, right] = ARROWS[key];
    const column = view.cell?.column ?? (right ? strongest(view) : undefined);
    const box = view.layout.boxes.get(`scores.${view.step.attention}`);
    const row = Math.max(0, Math.min(box.rows - 1, view.row + down));
    view.select(row, column === undefined ? undefined : Math.max(0, Math.min(box.columns - 1, column + right)));
  } else return;
  event.preventDefault();
}

function wheel(view, event) {
  if (!event.ctrlKey && document.activeElement !== view.parts.stage && view.parts.stage.getRootNode().activeElement !== view.parts.stage) return;
  event.preventDefault();
  const now = performance.now();
  if (now - (view.wheeled ?? 0) < WHEEL_PAUSE || Math.abs(event.deltaY) < 4) return;
  view.wheeled = now;
  zoomBy(view, event.deltaY < 0 ? 1 : -1);
}

/** Whether frames are too small for their inside to be seen. */
const far = (view) => view.layout.boxes.get("block.0.0").width * view.camera.scale < 400;

function hit(view, event) {
  const { left, top } = view.parts.canvas.getBoundingClientRect();
  const [x, y] = [event.clientX - left, event.clientY - top];
  const world = projection(view.camera, view.width, view.height).back(x, y);
  const inFrame = [...view.layout.boxes.values()].reverse(); // what is inside a frame comes after it
  for (const box of inFrame) {
    if (box.inside && far(view)) continue;
    if (world.x < box.x - (box.tokens === undefined ? 0 : 3 * box.unit) || world.x > box.x + box.width || world.y < box.y || world.y > box.y + box.height) continue;
    const row = box.rows ? Math.floor(((world.y - box.y) / box.height) * box.rows) : 0;
    const inside = world.x >= box.x;
    const column = box.columns && inside ? Math.floor(((world.x - box.x) / box.width) * box.columns) : undefined;
    return { box, row, column, x, y };
  }
  return null;
}

function press(view, event) {
  const found = hit(view, event);
  if (!found) {
    view.play(false);
    return;
  }
  const { box, row, column } = found;
  if (box.kind === "choices") view.play(false);
  else if (box.kind === "frame") {
    if (!far(view)) return;
    view.playing = false;
    view.openBlock(box.stack, box.block);
  } else if (["keys", "values"].includes(box.kind)) view.select(view.row, row);
  else view.select(row, column);
}

function point(view, event) {
  const { tip } = view.parts;
  const found = event && view.walk && view.camera ? hit(view, event) : null;
  const hover = found?.box.rows ? { box: found.box.id, row: found.row } : null;
  if (JSON.stringify(hover) !== JSON.stringify(view.hover)) {
    view.hover = hover;
    view.schedule();
  }
  const text = found && textOf(view, found);
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  tip.style.left = `${Math.min(found.x + 12, view.width - tip.offsetWidth - 4)}px`;
  tip.style.top = `${found.y + 16}px`;
}

function textOf(view, { box, row, column }) {
  if (!box.rows) return box.kind === "frame" ? view.titleOf(box) : "";
  const stack = box.words ?? box.tokens ?? view.walk.block[0];
  const token = view.walk.stacks[stack].tokens[row];
  if (column === undefined) return view.say("named", { name: view.titleOf(box), text: token });
  const { values, columns } = numbersOf(view.walk, box);
  const key = view.walk.stacks[box.keys].tokens[column];
  return view.say("named", { name: `${token} → ${key}`, text: view.format(values[row * columns + column], 3) });
}

/** Read the header, with `numbers(array)` for what it names. */
export function readWalk(bytes) {
  const { header, buffer, start } = readFrame(bytes);
  const read = new Map();
  const numbers = (array) => {
    if (!read.has(array)) read.set(array, arrayOf(array, buffer, start));
    return read.get(array);
  };
  return { ...header, numbers };
}

function arrayOf({ offset, shape, type, scale, values }, buffer, start) {
  if (values) return values;
  const count = shape.reduce((product, side) => product * side, 1);
  const from = start + offset;
  if (type === "u1") return new Uint8Array(buffer, from, count);
  if (type === "f4") return new Float32Array(buffer.slice(from, from + 4 * count));
  if (type === "i1") return Float32Array.from(new Int8Array(buffer, from, count), (level) => (level * scale) / 127);
  return Float32Array.from(new Uint16Array(buffer.slice(from, from + 2 * count)), halfOf);
}

/** The finite number of 16 bits; Float16Array came to browsers as late as 2024 and 2025. */
function halfOf(bits) {
  const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
  const size = exponent ? 2 ** (exponent - 25) * (1024 + fraction) : 2 ** -24 * fraction;
  return bits >> 15 ? -size : size;
}
