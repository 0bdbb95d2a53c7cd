// Sinusoidal positions (viz_core/positional/sinusoidal.py; Vaswani 2017, section 3.5).

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
