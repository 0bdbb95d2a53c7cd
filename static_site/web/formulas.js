// Sinusoidal positions (viz_core/positional/sinusoidal.py; Vaswani 2017, section 3.5), the relative projection and its proof
// (viz_core/positional/sinusoidal.py and viz_core/lessons/relative_projection).

/** omega_j = base^(-2j/d) of each pair of dimensions, radians a position. */
export const angularFrequencies = (width, base = 10000) => Float64Array.from({ length: Math.ceil(width / 2) }, (_, pair) => base ** ((-2 * pair) / width));

/** P[i, 2j] = sin(i omega_j), P[i, 2j+1] = cos(i omega_j) with omega_j = base^(-2j/d), row by row, as float32 or `Kind`. */
export function sinusoids(rows, width, base = 10000, Kind = Float32Array) {
  const table = new Kind(rows * width);
  const frequencies = angularFrequencies(width, base);
  for (let column = 0; column < width; column += 1) {
    const wave = column % 2 ? Math.cos : Math.sin;
    for (let row = 0; row < rows; row += 1) table[row * width + column] = wave(row * frequencies[column >> 1]);
  }
  return table;
}

/** max over i of the difference between |p_i|^2 and d/2, or with odd d (d-1)/2 + sin^2 of the last angle. */
export function normError(table, rows, width, base) {
  const last = angularFrequencies(width, base).at(-1);
  let most = 0;
  for (let row = 0; row < rows; row += 1) {
    let square = 0;
    for (let i = row * width; i < (row + 1) * width; i += 1) square += table[i] ** 2;
    const expected = Math.floor(width / 2) + (width % 2 ? Math.sin(row * last) ** 2 : 0);
    most = Math.max(most, Math.abs(square - expected));
  }
  return most;
}

/** max over steps and pairs of |wavelength read off two rows / (2 pi / omega_j) - 1|, for any base from 1 on. */
export function wavelengthError(table, rows, width, base) {
  const frequencies = angularFrequencies(width, base);
  let most = 0;
  for (let pair = 0; pair < width >> 1; pair += 1) {
    for (let row = 1; row < rows; row += 1) {
      const [now, before] = [row * width + 2 * pair, (row - 1) * width + 2 * pair];
      const across = table[now] * table[before + 1] - table[now + 1] * table[before];
      const along = table[now] * table[before] + table[now + 1] * table[before + 1];
      most = Math.max(most, Math.abs(frequencies[pair] / Math.atan2(across, along) - 1));
    }
  }
  return most;
}

/** Positions from which offsets are checked: all of them, or so many evenly spaced, both ends included. */
export function startPositions(rows, starts = 64) {
  const count = Math.min(rows, starts);
  return Array.from({ length: count }, (_, i) => (count === 1 ? 0 : Math.round((i * (rows - 1)) / (count - 1))));
}

/** max |p_i . p_j - p_0 . p_|i-j|| over such starts i and every j, in the columns that have a partner. */
export function offsetError(table, rows, width) {
  const paired = width - (width % 2);
  const product = (i, j) => {
    let sum = 0;
    for (let column = 0; column < paired; column += 1) sum += table[i * width + column] * table[j * width + column];
    return sum;
  };
  const similarity = Float64Array.from({ length: rows }, (_, row) => product(0, row));
  let most = 0;
  for (const start of startPositions(rows)) {
    for (let row = 0; row < rows; row += 1) most = Math.max(most, Math.abs(product(start, row) - similarity[Math.abs(row - start)]));
  }
  return most;
}

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
