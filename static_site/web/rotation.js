// The relative projection and its proof (viz_core/positional/relative_projection.py and viz_core/lessons/relative_projection).

import { angularFrequencies, sinusoids } from "./sinusoids.js";

/** The positions over which residuals are measured. */
export const POSITIONS = 1000;

const pairAt = (position, omega) => [Math.sin(position * omega), Math.cos(position * omega)];

/** [[cos a, sin a], [-sin a, cos a]] times (sine, cosine), as a pair. */
const rotate = ([cos, sin], [s, c]) => [cos * s + sin * c, -sin * s + cos * c];

/** cos and sin of offset times omega_j, which are the blocks of M, for each pair j. */
export const relativeProjection = (offset, width, base) => Array.from(angularFrequencies(width, base), (omega) => [Math.cos(offset * omega), Math.sin(offset * omega)]);

/** M p_i, or with `mirrored` its transpose times p_i, for one pair. */
export const moved = (offset, position, omega, mirrored = false) =>
  rotate([Math.cos(offset * omega), (mirrored ? -1 : 1) * Math.sin(offset * omega)], pairAt(position, omega));

/** The largest entry of |M p_i - p_(i + offset)| over positions 0 to 999: 0 if there were no rounding. */
export function projectionResidual(offset, width, base, mirrored = false) {
  const [blocks, frequencies] = [relativeProjection(offset, width, base), angularFrequencies(width, base)];
  const table = sinusoids(POSITIONS, width, base, Float64Array);
  let most = 0;
  for (let position = 0; position < POSITIONS; position += 1) {
    blocks.forEach(([cos, sin], pair) => {
      const at = position * width + 2 * pair;
      const found = rotate([cos, mirrored ? -sin : sin], [table[at], table[at + 1]]);
      const wanted = pairAt(position + offset, frequencies[pair]);
      most = Math.max(most, Math.abs(found[0] - wanted[0]), Math.abs(found[1] - wanted[1]));
    });
  }
  return most;
}

/** How far rotations read off single positions lie from M: 0 if M did not depend on the position. */
export function rotationSpread(offset, width, base) {
  const [blocks, frequencies] = [relativeProjection(offset, width, base), angularFrequencies(width, base)];
  let most = 0;
  for (let position = 0; position < POSITIONS; position += 1) {
    blocks.forEach(([cos, sin], pair) => {
      const [[s, c], [s_, c_]] = [position, position + offset].map((at) => pairAt(at, frequencies[pair]));
      most = Math.max(most, Math.abs(c * c_ + s * s_ - cos), Math.abs(s_ * c - c_ * s - sin));
    });
  }
  return most;
}

/** The four lines of the proof for one pair: what each equals, the numbers in it, and how far it is from the line before. */
export function proofLines(offset, position, pair, width, base) {
  const omega = angularFrequencies(width, base)[pair];
  const [cos_a, sin_a] = relativeProjection(offset, width, base)[pair];
  const [sin_i, cos_i] = pairAt(position, omega);
  const product = rotate([cos_a, sin_a], [sin_i, cos_i]);
  const whole = wholeProduct(offset, position, width, base).slice(2 * pair, 2 * pair + 2);
  const written = [cos_a * sin_i + sin_a * cos_i, -sin_a * sin_i + cos_a * cos_i];
  const sum = position * omega + offset * omega;
  const addition = [Math.sin(sum), Math.cos(sum)];
  const arrived = pairAt(position + offset, omega);
  const factors = { cos_a, sin_a, minus_sin_a: -sin_a, sin_i, cos_i };
  const angles = { start: position * omega, turn: offset * omega, end: (position + offset) * omega };
  const lines = [["product", whole, product, factors], ["written", product, written, factors], ["addition", written, addition, angles], ["result", addition, arrived, angles]];
  return lines.map(([name, left, right, numbers]) => ({
    name, numbers, result: right, residual: Math.max(...left.map((value, i) => Math.abs(value - right[i]))),
  }));
}

/** M p_i with the whole matrix, zeros included. */
function wholeProduct(offset, position, width, base) {
  const row = Array.from(angularFrequencies(width, base), (omega) => pairAt(position, omega)).flat();
  const blocks = relativeProjection(offset, width, base);
  return row.map((_, to) => row.reduce((sum, value, from) => sum + entryOf(blocks, to, from) * value, 0));
}

/** An entry of M. */
function entryOf(blocks, row, column) {
  if (row >> 1 !== column >> 1) return 0;
  const [cos, sin] = blocks[row >> 1];
  if (row === column) return cos;
  return row % 2 ? -sin : sin;
}

/** What rounding alone may cost an entry of M p_i, so the most a true claim may show: (4 + reach) eps. */
export const roundingBound = (reach) => (4 + reach) * Number.EPSILON;
