// What a map shows, in the numbers by which heads are measured (viz_core/maps/fingerprints.py): of maps made here.

/** Bits of a row: -sum w log2 w. */
function entropyOf(values, from, columns) {
  let bits = 0;
  for (let j = from; j < from + columns; j += 1) if (values[j] > 0) bits -= values[j] * Math.log2(values[j]);
  return bits;
}

/**
 * The measures of a map whose rows sum to 1, or `largest` of several heads, whose rows do not; null for what means
 * nothing there.
 * Args:
 *   values: rows x columns weights.
 *   separators: columns that separate or end.
 *   onItself: whether rows and columns are places of one sequence.
 *   seen: {grid, special} of the picture whose patches they are, or null.
 */
export function measureMap(values, rows, columns, { separators = [], onItself = false, seen = null, largest = false }) {
  const means = new Float64Array(columns);
  let entropy = 0;
  for (let i = 0; i < rows; i += 1) {
    entropy += entropyOf(values, i * columns, columns) / rows;
    for (let j = 0; j < columns; j += 1) means[j] += values[i * columns + j] / rows;
  }
  const square = onItself && rows === columns;
  const inLine = square && !seen && rows > 1;
  const along = (offset) => {
    let sum = 0;
    for (let i = Math.max(0, -offset); i < rows - Math.max(0, offset); i += 1) sum += values[i * columns + i + offset];
    return sum / (rows - Math.abs(offset));
  };
  return {
    entropy: largest ? null : entropy,
    diagonal: square ? along(0) : null,
    previous: inLine ? along(-1) : null,
    next: inLine ? along(1) : null,
    first: seen && !seen.special ? null : means[0],
    separator: separators.length ? separators.reduce((sum, column) => sum + means[column], 0) : null,
    information: onItself || largest ? null : Math.max(0, entropyOf(means, 0, columns) - entropy),
    distance: seen ? distanceOver(values, columns, seen) : null,
  };
}

/** How far patches look, in patches, by what they give to patches. */
function distanceOver(values, columns, { grid: [height, width], special }) {
  let [sum, looking] = [0, 0];
  for (let i = 0; i < height * width; i += 1) {
    let [mass, far] = [0, 0];
    for (let j = 0; j < height * width; j += 1) {
      const weight = values[(special + i) * columns + special + j];
      mass += weight;
      far += weight * Math.hypot(Math.floor(i / width) - Math.floor(j / width), (i % width) - (j % width));
    }
    if (mass) sum += far / mass;
    looking += mass > 0;
  }
  return sum / Math.max(1, looking);
}
