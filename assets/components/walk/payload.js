// One forward pass as Python describes it (ui/widgets/walk_payload.py).

import { readFrame } from "../shared/frame.js";

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

function arrayOf({ offset, shape, type, scale }, buffer, start) {
  const count = shape.reduce((product, side) => product * side, 1);
  const from = start + offset;
  if (type === "u1") return new Uint8Array(buffer, from, count);
  if (type === "f4") return new Float32Array(buffer.slice(from, from + 4 * count));
  if (type === "i1") return Float32Array.from(new Int8Array(buffer, from, count), (level) => (level * scale) / 127);
  return Float32Array.from(new Uint16Array(buffer.slice(from, from + 2 * count)), half);
}

/** A number of 16 bits (IEEE 754 binary16). */
function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1024 + fraction) * 2 ** (exponent - 25);
}
