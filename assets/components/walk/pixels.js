// Arrays as small pictures, a pixel a number, that a canvas scales to any size.

import { makePalette } from "../shared/palette.js";

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

function paint(walk, box) {
  const { values, columns } = numbersOf(walk, box);
  const weights = box.kind === "matrix" && !box.signed;
  const limit = weights ? 1 : Math.max(...values.map(Math.abs)) || 1;
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
