// Where everything is in the world, the curves between, and which part of it is on the screen. A token of an embedding
// takes a unit; a block stands in a frame, and the open one is drawn in it, so small that it is seen only from near.

import { makePalette } from "../shared/canvas.js";

const TALLEST = 16; // rows' heights of a matrix
const GAP = 2.2;
const LABEL = 3.4; // for the tokens beside rows
const FRAME = 17; // width of a block's frame
const BESIDE = 3; // between frames

/**
 * Boxes by id: {id, kind, x, y, width, height, unit, rows, columns, ...}, `unit` the size of what is one high in it.
 * Only `shown` rows of the open stack are there: a word that is not yet written has none.
 */
export function layOut(walk, head, shown) {
  const [open, number] = walk.block;
  const inner = layOutBlock(walk, head, shown);
  const unit = FRAME / inner.width;
  const high = Math.max(4.5, inner.height * unit) + 0.6;
  const boxes = new Map();
  let x = LABEL;
  walk.stacks.forEach((stack, s) => {
    const rows = s === open ? shown : stack.tokens.length;
    const tall = Math.min(rows, TALLEST);
    const middle = (stack.maps.length * (high + BESIDE) - BESIDE) / 2;
    const put = (name, width, more) => {
      const id = `${name}.${s}`;
      boxes.set(id, { id, name, kind: "vectors", x, y: middle - tall / 2, width, height: tall, unit: tall / rows, rows, stack: s, ...more });
      x += width + GAP;
    };
    put("embedding", 5, { array: stack.embedded, tokens: s, stage: "embedding" });
    if (stack.positions) put("positions", 5, { array: stack.positions, stage: "positions" });
    stack.maps.forEach((_, block) => {
      const y = block * (high + BESIDE);
      boxes.set(`block.${s}.${block}`, { id: `block.${s}.${block}`, kind: "frame", x, y, width: FRAME, height: high, unit: 1, stack: s, block });
    });
    x += FRAME + GAP + LABEL;
  });
  const last = walk.stacks.length - 1;
  const end = walk.stacks[last].maps.length - 1;
  const size = 9.6;
  const above = boxes.get(`block.${last}.${end}`).y + high / 2 - size / 2;
  boxes.set("logits", { id: "logits", name: "logits", kind: "choices", x: x - LABEL, y: above, width: 11, height: size, unit: 1, stage: "logits" });
  const frame = boxes.get(`block.${open}.${number}`);
  const down = frame.y + frame.height / 2 - (inner.height * unit) / 2;
  for (const box of inner.boxes) {
    const place = { x: frame.x + box.x * unit, y: down + box.y * unit, width: box.width * unit, height: box.height * unit };
    boxes.set(box.id, { ...box, ...place, unit: unit * (box.unit ?? 1), inside: true, stack: open });
  }
  const all = [...boxes.values()];
  const [top, bottom] = [Math.min(...all.map((box) => box.y)), Math.max(...all.map((box) => box.y + box.height))];
  return { boxes, whole: { x: -0.5, y: top - 2.2, width: x - LABEL + 12.5, height: bottom - top + 3 } };
}

/** The boxes of the open block, from (0, 0). */
function layOutBlock(walk, head, shown) {
  const [open] = walk.block;
  const boxes = [];
  let x = LABEL + 0.6;
  const put = (name, kind, width, rows, pitch, more) => {
    const id = more.attention === undefined ? name : `${name}.${more.attention}`;
    boxes.push({ id, name, kind, x, y: (-rows * pitch) / 2, width, height: rows * pitch, rows, unit: pitch, ...more });
    x += width + GAP;
  };
  const pitch = Math.min(1, TALLEST / shown);
  put("input", "vectors", 5, shown, pitch, { array: walk.input, tokens: open, stage: "input" });
  walk.attentions.forEach((call, a) => {
    const columns = call.crosses ? call.columns : shown;
    const unit = Math.min(1.25, TALLEST / Math.max(shown, columns));
    const small = 0.62 * unit;
    const keys = call.crosses ? 0 : open;
    const key = Math.floor((head * call.key_heads) / call.heads);
    const stage = (name) => ({ stage: name, attention: a, call });
    let y = -(small * (shown + 2 * columns) + 3.2) / 2;
    for (const [name, rows, h] of [["queries", shown, head], ["keys", columns, key], ["values", columns, key]]) {
      const words = name === "queries" ? open : keys;
      boxes.push({ id: `${name}.${a}`, name, kind: name, x, y, width: 4.4, height: small * rows, rows, unit: small, array: call[name], head: h, words, ...stage("projections") });
      y += small * rows + 1.6;
    }
    x += 4.4 + GAP + LABEL;
    const matrix = { columns, head, tokens: open, keys };
    put("scores", "matrix", unit * columns, shown, unit, { ...matrix, array: call.scores, signed: true, ...stage("scores") });
    x += LABEL - GAP / 2;
    put("weights", "matrix", unit * columns, shown, unit, { ...matrix, array: call.weights, ...stage("softmax") });
    put("outputs", "outputs", 4.4, shown, unit, { array: call.outputs, head, ...stage("sum") });
    put("joined", "vectors", 7, shown, unit, { array: call.joined, segments: call.heads, segment: head, ...stage("heads") });
    put("state", "vectors", 5, shown, unit, { array: call.state, ...stage("residual") });
  });
  put("neurons", "vectors", 9, shown, pitch, { array: walk.neurons, stage: "feed-forward" });
  put("output", "vectors", 5, shown, pitch, { array: walk.output, stage: "feed-forward" });
  const top = Math.min(...boxes.map((box) => box.y)) - 3.4;
  for (const box of boxes) box.y -= top;
  return { boxes, width: x - GAP + 0.6, height: Math.max(...boxes.map((box) => box.y + box.height)) + 1 };
}

/** Ids of the boxes that a step reads, and of those it fills. */
export function boxesOf({ stage, stack, attention: a }) {
  const before = a ? `state.${a - 1}` : "input";
  const [embedding, positions] = [`embedding.${stack}`, `positions.${stack}`];
  return {
    tokens: [[], [embedding]],
    embedding: [[], [embedding]],
    positions: [[embedding], [positions]],
    rotation: [[], [embedding]],
    projections: [[before], [`queries.${a}`, `keys.${a}`, `values.${a}`]],
    scores: [[`queries.${a}`, `keys.${a}`], [`scores.${a}`]],
    mask: [[], [`scores.${a}`]],
    softmax: [[`scores.${a}`], [`weights.${a}`]],
    sum: [[`weights.${a}`, `values.${a}`], [`outputs.${a}`]],
    heads: [[`outputs.${a}`], [`joined.${a}`]],
    residual: [[`joined.${a}`], [`state.${a}`]], // and what entered, from afar
    "feed-forward": [[`state.${a}`, "neurons"], ["output"]],
    logits: [[], ["logits"]],
    choice: [[], ["logits"]],
    again: [[], []],
  }[stage];
}

/** The rectangle of some boxes, with room for their labels. */
export function around(layout, ids) {
  const boxes = ids.map((id) => layout.boxes.get(id)).filter(Boolean);
  if (!boxes.length) return layout.whole;
  const size = Math.max(...boxes.map((box) => box.unit));
  const left = Math.min(...boxes.map((box) => box.x - size * (box.tokens === undefined ? 0.8 : LABEL)));
  const right = Math.max(...boxes.map((box) => box.x + box.width)) + 0.8 * size;
  const top = Math.min(...boxes.map((box) => box.y - size * (box.kind === "matrix" ? 3.4 : 2)));
  const bottom = Math.max(...boxes.map((box) => box.y + box.height)) + 0.7 * size;
  return { x: left, y: top, width: right - left, height: bottom - top, unit: size };
}

/** A row of a box, or a cell of a matrix, in the world. */
export function cellOf(box, row, column) {
  const height = box.height / box.rows;
  const y = box.y + row * height;
  if (column === undefined) return { x: box.x, y, width: box.width, height };
  const width = box.width / box.columns;
  return { x: box.x + column * width, y, width, height };
}

const SIGNED = makePalette(["#2166ac", "#67a9cf", "#d1e5f0", "#f7f7f7", "#fddbc7", "#ef8a62", "#b2182b"]);
const WEIGHTS = makePalette(["#440154", "#3b528b", "#21918c", "#5ec962", "#fde725"]);

/** The numbers of a box, row after row, and how many there are in a row. */
export function numbersOf(walk, box) {
  const all = walk.numbers(box.array);
  const { shape } = box.array;
  const columns = shape.at(-1);
  const from = shape.length === 3 ? box.head * shape[1] * columns : 0;
  return { values: all.subarray(from, from + box.rows * columns), columns };
}

/** Where a key may be attended to, of the box's head: as long as its numbers. */
export function allowedOf(walk, box) {
  const [, rows, columns] = box.call.allowed.shape;
  return walk.numbers(box.call.allowed).subarray(box.head * rows * columns, (box.head + 1) * rows * columns);
}

const pictures = new WeakMap();

/** A canvas with a pixel for each number of a box. */
export function pictureOf(walk, box) {
  const key = `${box.head}.${box.rows}`;
  if (!pictures.has(box.array)) pictures.set(box.array, new Map());
  const made = pictures.get(box.array);
  if (!made.has(key)) made.set(key, paint(walk, box));
  return made.get(key);
}

const OUTLIERS = 0.01; // of the values, which have the last colour: one alone would leave all others white

/** The value that signed colours reach to: all but the largest are within it. */
export function limitOf(values) {
  const sizes = Float32Array.from(values, Math.abs).sort();
  return sizes.at(-1 - Math.floor(OUTLIERS * sizes.length)) || sizes.at(-1) || 1;
}

function paint(walk, box) {
  const { values, columns } = numbersOf(walk, box);
  const weights = box.kind === "matrix" && !box.signed;
  const limit = weights ? 1 : limitOf(values);
  return fill(columns, box.rows, weights ? WEIGHTS : SIGNED, (i) => (weights ? values[i] : 0.5 + values[i] / limit / 2));
}

/** The weights of one head of a block that is not open. */
export function thumbnail(walk, array, head) {
  if (!pictures.has(array)) pictures.set(array, new Map());
  const made = pictures.get(array);
  const [, rows, columns] = array.shape;
  const values = walk.numbers(array);
  if (!made.has(head)) made.set(head, fill(columns, rows, WEIGHTS, (i) => values[head * rows * columns + i] / 255));
  return made.get(head);
}

function fill(columns, rows, palette, share) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: columns, height: rows });
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  const out = new Uint32Array(image.data.buffer);
  for (let i = 0; i < out.length; i += 1) out[i] = palette[Math.round(255 * Math.min(1, Math.max(0, share(i))))];
  context.putImageData(image, 0, 0);
  return canvas;
}

const ON_PAPER = { queries: "#0072b2", keys: "#d55e00", values: "#009e73", outputs: "#009e73", weights: "#a34b82" };
const ON_DARK = { queries: "#56b4e9", keys: "#f08c42", values: "#2fc79b", outputs: "#2fc79b", weights: "#d68fbb" };

export const coloursOf = (dark) => (dark ? ON_DARK : ON_PAPER);

export function drawLinks(pen, view) {
  const { stage, attention: a } = view.step;
  const { colours } = pen;
  const box = (name) => view.layout.boxes.get(name);
  const before = box(a ? `state.${a - 1}` : "input");
  const row = view.row;
  const link = (from, fromRow, to, toRow, more) => curve(pen, rightOf(from, fromRow), leftOf(to, toRow), more);
  const call = view.walk.attentions[a];
  if (!call) return;
  if (stage === "projections") {
    link(before, row, box(`queries.${a}`), row, { colour: colours.queries });
    if (call.crosses) return;
    for (const name of ["keys", "values"]) link(before, row, box(`${name}.${a}`), row, { colour: colours[name] });
  } else if (stage === "scores" || stage === "mask") {
    const [scores, column] = [box(`scores.${a}`), view.cell?.column ?? Math.min(row, box(`scores.${a}`).columns - 1)];
    const target = cellOf(scores, row, column);
    const end = { x: scores.x, y: target.y + target.height / 2 }; // not across the numbers of the row
    curve(pen, rightOf(box(`queries.${a}`), row), end, { colour: colours.queries });
    curve(pen, rightOf(box(`keys.${a}`), column), end, { colour: colours.keys });
  } else if (stage === "softmax") {
    link(box(`scores.${a}`), row, box(`weights.${a}`), row, { colour: colours.weights });
  } else if (stage === "sum") {
    const weights = box(`weights.${a}`);
    const { values, columns } = numbersOf(view.walk, weights);
    for (let column = 0; column < columns; column += 1) {
      const weight = values[row * columns + column];
      if (weight < 0.02 || column >= weights.columns) continue;
      const end = leftOf(box(`outputs.${a}`), row);
      curve(pen, rightOf(box(`values.${a}`), column), end, { colour: colours.weights, width: 1 + 6 * weight, alpha: 0.25 + 0.6 * weight });
    }
    link(weights, row, box(`outputs.${a}`), row, { colour: colours.weights });
  } else if (stage === "heads") {
    link(box(`outputs.${a}`), row, box(`joined.${a}`), row, { colour: colours.values });
  } else if (stage === "residual") {
    link(box(`joined.${a}`), row, box(`state.${a}`), row, { colour: pen.accent });
    link(before, row, box(`state.${a}`), row, { colour: pen.ink, alpha: 0.35 });
  } else if (stage === "feed-forward") {
    link(box("neurons"), row, box("output"), row, { colour: pen.accent });
  }
}

function rightOf(box, row) {
  const cell = cellOf(box, Math.min(row, box.rows - 1));
  return { x: cell.x + cell.width, y: cell.y + cell.height / 2 };
}

function leftOf(box, row) {
  const cell = cellOf(box, Math.min(row, box.rows - 1));
  return { x: cell.x, y: cell.y + cell.height / 2 };
}

function curve({ context, at }, from, to, { colour, width = 2, alpha = 0.9 }) {
  const [x, y, left, top] = [at.x(from.x), at.y(from.y), at.x(to.x), at.y(to.y)];
  const reach = Math.max(20, Math.abs(left - x) / 2);
  context.globalAlpha = alpha;
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  context.moveTo(x, y);
  context.bezierCurveTo(x + reach, y, left - reach, top, left, top);
  context.stroke();
  context.globalAlpha = 1;
}

const LARGEST = 56; // pixels of a row

/** The camera that shows a rectangle whole, in a view of so many pixels; no `unit` of it is larger than a row may be. */
export function fit({ x, y, width, height, unit = 1 }, wide, high) {
  const scale = Math.min(wide / width, high / height, LARGEST / unit);
  return { x: x + width / 2, y: y + height / 2, scale };
}

/** The camera a share of the way from one to another: evenly in the logarithm of the scale. */
export function between(from, to, share) {
  const scale = from.scale * (to.scale / from.scale) ** share;
  // So that a zoom keeps its target in place: places move as 1 / scale does.
  const shift = Math.abs(to.scale - from.scale) < 1e-6 * to.scale ? share : (1 / from.scale - 1 / scale) / (1 / from.scale - 1 / to.scale);
  return { x: from.x + (to.x - from.x) * shift, y: from.y + (to.y - from.y) * shift, scale };
}

export const ease = (share) => (share < 0.5 ? 4 * share ** 3 : 1 - (2 - 2 * share) ** 3 / 2);

export function projection(camera, wide, high) {
  const { x, y, scale } = camera;
  return {
    scale,
    x: (at) => (at - x) * scale + wide / 2,
    y: (at) => (at - y) * scale + high / 2,
    back: (left, top) => ({ x: (left - wide / 2) / scale + x, y: (top - high / 2) / scale + y }),
  };
}
