// Sinusoidal positions (viz_core/positional/sinusoidal.py; Vaswani 2017, section 3.5).

/** P[i, 2j] = sin(i omega_j), P[i, 2j+1] = cos(i omega_j) with omega_j = base^(-2j/d), row by row as float32. */
export function sinusoids(rows, width, base = 10000) {
  const table = new Float32Array(rows * width);
  for (let column = 0; column < width; column += 1) {
    const frequency = base ** (-(column - (column % 2)) / width);
    const wave = column % 2 ? Math.cos : Math.sin;
    for (let row = 0; row < rows; row += 1) table[row * width + column] = wave(row * frequency);
  }
  return table;
}
