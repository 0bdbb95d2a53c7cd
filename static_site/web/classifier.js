// A shipped vision transformer: class probabilities, and queries and keys of every layer; and pictures in the form of a
// model's training pictures, as viz_core/images/preprocessing.py and Pillow make them. Rows are always filtered before
// columns; where Pillow does it the other way round, a pixel may be 1 of 255 levels off.

import { bytes, callsOf, gatesOf, loadModel, shapeOf } from "./model.js";

const EDGE = 0.05 * 255 * Math.sqrt(3); // a pixel is background within 5% of the largest distance of two colours
const WORKING_SIDE = 1024;
const BITS = 22; // of Pillow's fixed-point weights

/** The value of a pixel's channel. */
const at = ({ width, channels, data }, row, column, channel) => data[(row * width + column) * channels + channel];

/** A picture whose values are those of a function of row, column and channel. */
function made(width, height, channels, valueOf) {
  const data = new Uint8Array(width * height * channels);
  for (let row = 0, i = 0; row < height; row += 1)
    for (let column = 0; column < width; column += 1) for (let channel = 0; channel < channels; channel += 1, i += 1) data[i] = valueOf(row, column, channel);
  return { width, height, channels, data };
}

/** Width and height times a number, to the nearest whole pixel, at least one. */
const scaled = ({ width, height }, by) => [width, height].map((side) => Math.max(1, Math.round(side * by)));

/** The largest centred part of the right shape, resized. */
function photograph(picture, [width, height]) {
  const scale = Math.min(picture.width / width, picture.height / height);
  const inner = scaled({ width, height }, scale);
  const [left, top] = [Math.floor((picture.width - inner[0]) / 2), Math.floor((picture.height - inner[1]) / 2)];
  return resized(cropped(picture, [left, top, left + inner[0], top + inner[1]]), [width, height]);
}

/** Grey, bright on black, the longer side filling the square. */
function garment(picture, [width, height]) {
  const colour = resized(picture, scaled(picture, Math.min(1, WORKING_SIDE / Math.max(picture.width, picture.height))));
  const border = borderColour(colour);
  let background = grey(...border.map(Math.floor));
  const part = cropped(colour, boxOf(colour, border));
  const isInverted = background > 127;
  if (isInverted) background = 255 - background;
  const shape = made(part.width, part.height, 1, (row, column) => {
    const value = grey(...[0, 1, 2].map((channel) => at(part, row, column, channel)));
    return isInverted ? 255 - value : value;
  });
  const scale = Math.min(width / shape.width, height / shape.height);
  const inner = scaled(shape, scale);
  const small = resized(shape, inner);
  const [left, top] = [Math.floor((width - inner[0]) / 2), Math.floor((height - inner[1]) / 2)];
  const isInside = (row, column) => row >= top && row < top + inner[1] && column >= left && column < left + inner[0];
  return made(width, height, 3, (row, column) => (isInside(row, column) ? at(small, row - top, column - left, 0) : background));
}

/** ITU-R 601-2, in Pillow's fixed point. */
const grey = (red, green, blue) => (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16;

/** The median of each channel along the four edges. */
function borderColour(picture) {
  const { width, height } = picture;
  return [0, 1, 2].map((channel) => {
    const values = [];
    for (let column = 0; column < width; column += 1) values.push(at(picture, 0, column, channel), at(picture, height - 1, column, channel));
    for (let row = 0; row < height; row += 1) values.push(at(picture, row, 0, channel), at(picture, row, width - 1, channel));
    values.sort((a, b) => a - b);
    return (values[values.length / 2 - 1] + values[values.length / 2]) / 2;
  });
}

/** Left, top, right and bottom of what is not background; the whole picture where all of it is. */
function boxOf(picture, border) {
  const { width, height } = picture;
  let [left, top, right, bottom] = [width, height, 0, 0];
  for (let row = 0; row < height; row += 1) {
    for (let column = 0; column < width; column += 1) {
      if (Math.hypot(...border.map((value, channel) => at(picture, row, column, channel) - value)) <= EDGE) continue;
      [left, right] = [Math.min(left, column), Math.max(right, column + 1)];
      [top, bottom] = [Math.min(top, row), Math.max(bottom, row + 1)];
    }
  }
  return right ? [left, top, right, bottom] : [0, 0, width, height];
}

const cropped = (picture, [left, top, right, bottom]) =>
  made(right - left, bottom - top, picture.channels, (row, column, channel) => at(picture, top + row, left + column, channel));

/** Pillow's bicubic filter, which averages over all pixels that become one. */
function resized(picture, [width, height]) {
  const across = picture.width === width ? picture : filtered(picture, width);
  return across.height === height ? across : turned(filtered(turned(across), height));
}

const bicubic = (x) => {
  const far = Math.abs(x);
  if (far < 1) return (1.5 * far - 2.5) * far * far + 1;
  return far < 2 ? -0.5 * (((far - 5) * far + 8) * far - 4) : 0;
};

/** Rows of another length. */
function filtered(picture, columns) {
  const { width, height, channels, data } = picture;
  const scale = width / columns;
  const wide = Math.max(1, scale);
  const filters = Array.from({ length: columns }, (_, column) => {
    const center = (column + 0.5) * scale;
    const first = Math.max(0, Math.trunc(center - 2 * wide + 0.5));
    const last = Math.min(width, Math.trunc(center + 2 * wide + 0.5));
    const exact = Array.from({ length: last - first }, (__, i) => bicubic((i + first - center + 0.5) * (1 / wide)));
    const total = exact.reduce((sum, weight) => sum + weight, 0);
    return { first, weights: exact.map((weight) => (weight / total) * 2 ** BITS).map((weight) => Math.trunc(weight + (weight < 0 ? -0.5 : 0.5))) };
  });
  return made(columns, height, channels, (row, column, channel) => {
    const { first, weights } = filters[column];
    let sum = 2 ** (BITS - 1);
    for (let i = 0; i < weights.length; i += 1) sum += data[(row * width + first + i) * channels + channel] * weights[i];
    return Math.min(255, Math.max(0, Math.floor(sum / 2 ** BITS)));
  });
}

/** Columns as rows. */
const turned = (picture) => made(picture.height, picture.width, picture.channels, (row, column, channel) => at(picture, column, row, channel));

/** A file's pixels in RGB, upright, transparency on white; null where the browser cannot read it. */
export async function decode(blob) {
  const bitmap = await createImageBitmap(blob, { colorSpaceConversion: "none" }).catch(() => null);
  if (!bitmap) return null;
  const { width, height } = bitmap;
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.fillStyle = "#ffffff";
  context.fillRect(0, 0, width, height);
  context.drawImage(bitmap, 0, 0);
  bitmap.close();
  const rgba = { width, channels: 4, data: context.getImageData(0, 0, width, height).data };
  return made(width, height, 3, (row, column, channel) => at(rgba, row, column, channel));
}

/** Of the files that `loadModel` takes, with pictures in a form, "garment" or "photograph". */
export async function openClassifier(files, form, progress) {
  const { classifier } = await loadModel(files, progress);
  const shape = shapeOf(classifier, "seen");
  const shaped = { garment, photograph }[form];

  /** @param off heads "GROUP.LAYER.HEAD" that are switched off */
  async function classify(picture, off = []) {
    const seen = shaped(picture, [shape[1], shape[0]]).data;
    const outputs = await classifier.run({ seen: bytes(seen, shape), gates: gatesOf(classifier, off, ["encoder-self"]) });
    const [probabilities, pixels] = [outputs.probabilities, outputs.pixels].map(({ data }) => Array.from(data));
    return { probabilities, pixels, seen: { shape, values: seen }, calls: callsOf(outputs, off) };
  }

  return { classify };
}
