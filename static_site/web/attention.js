// Attention weights from queries and keys (viz_core/trace/weights.py), and measures of maps (viz_core/maps/head_measures).

/**
 * Scores q k^T / sqrt(d) and weights, their softmax, of every head of a call (`callsOf` in model.js), heads x queries x keys as
 * float32. A head that is off has zeros; each key head serves as many neighbouring heads of queries (Ainslie 2023).
 */
export function attend({ heads, keyHeads = heads, size, queries, keys, causal, off = [] }) {
  const rows = queries.length / heads / size;
  const columns = keys.length / keyHeads / size;
  const [scores, weights] = [0, 1].map(() => new Float32Array(heads * rows * columns));
  const exact = new Float64Array(columns);
  for (let place = 0; place < heads * rows; place += 1) {
    const [head, row] = [Math.floor(place / rows), place % rows];
    const first = Math.floor((head * keyHeads) / heads) * columns;
    for (let column = 0; column < columns; column += 1) {
      let score = 0;
      for (let i = 0; i < size; i += 1) score += queries[place * size + i] * keys[(first + column) * size + i];
      exact[column] = score / Math.sqrt(size);
    }
    scores.set(exact, place * columns);
    if (off.includes(head)) continue;
    const seen = exact.subarray(0, causal ? columns - rows + row + 1 : columns);
    const most = Math.max(...seen);
    const total = seen.reduce((sum, score, i) => sum + (seen[i] = Math.exp(score - most)), 0);
    seen.forEach((share, column) => (weights[place * columns + column] = share / total));
  }
  return { scores, weights };
}

export const attentionWeights = (call) => attend(call).weights;

/** By how much the sum of any row differs from 1; a row of zeros, of a head that is off, counts as 0. */
export function rowError(weights, columns) {
  const sums = Array.from({ length: weights.length / columns }, (_, row) => weights.subarray(row * columns, (row + 1) * columns).reduce((sum, weight) => sum + weight, 0));
  return Math.max(...sums.map((sum) => (sum === 0 ? 0 : Math.abs(sum - 1))));
}

const bits = (p) => (p > 0 ? -p * Math.log2(p) : 0);

/** Measures without a target, null where they do not apply to a map. */
const FORMULAS = {
  entropy: ({ rowsSumToOne = true }, entropies) => (rowsSumToOne ? mean(entropies) : null),
  information: ({ rows, columns, onItself, rowsSumToOne = true }, entropies, weights) => {
    if (onItself || !rowsSumToOne) return null;
    const marginal = Array.from({ length: columns }, (_, column) => mean(Array.from({ length: rows }, (_, row) => weights[row * columns + column])));
    return Math.max(0, marginal.reduce((sum, p) => sum + bits(p), 0) - mean(entropies));
  },
  nearby: ({ columns, image }, _, weights) => (image ? mean(patchSums(weights, columns, image).map(({ nearby }) => nearby)) : null),
  /** To those that a patch attends to (Dosovitskiy 2021, figure 7). */
  distance({ columns, image }, _, weights) {
    const attending = image ? patchSums(weights, columns, image).filter(({ mass }) => mass > 0) : null;
    return attending && (mean(attending.map(({ mass, distance }) => distance / mass)) || 0); // 0 where a head is off
  },
};
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Mean weight on the target of a role (`Target` in viz_core/maps/head_measure.py); null where the map has none. */
function targetMass({ offset, keys }, weights, { rows, columns, onItself, separators, image }) {
  if (offset !== null && (!onItself || (offset && (rows < 2 || image)))) return null;
  const first = image && !image.special ? [] : [0];
  const places = offset === null ? (keys === "separators" ? separators : first) : [offset];
  if (!places.length) return null;
  let sum = 0;
  for (let row = 0; row < rows; row += 1)
    for (const place of places) {
      const column = offset === null ? place : row + place;
      if (column >= 0 && column < columns) sum += weights[row * columns + column];
    }
  return sum / (rows - Math.abs(offset ?? 0));
}

/** Measures of one map by name, those of `viz_core.maps.register` that apply to it; `info` says what `makeGroup` knows of it. */
export function measureMap(register, weights, info) {
  const entropies = Array.from({ length: info.rows }, (_, row) => weights.subarray(row * info.columns, (row + 1) * info.columns).reduce((sum, w) => sum + bits(w), 0));
  const values = register.map(({ name, target }) => [name, target ? targetMass(target, weights, info) : FORMULAS[name]?.(info, entropies, weights)]);
  return Object.fromEntries(values.filter(([, value]) => (value ?? null) !== null));
}

/** Places of tokens that match the pattern of those that separate or end. */
export function separatorsOf(pattern, tokens) {
  const whole = new RegExp(`^(?:${pattern})$`);
  return tokens.flatMap((token, i) => (whole.test(token) ? [i] : []));
}

/** The measure that names what a head attends to (viz_core/maps/fingerprints.py), or null. */
export function patternOf(register, { clear }, measures) {
  const named = register.filter(({ name, names }) => names && measures[name] >= clear);
  return named.reduce((best, { name }) => (best && measures[best] >= measures[name] ? best : name), null);
}

/** How clearly a head has a pattern that is not one of resting; 0 where it has none. */
export function clarityOf(register, patterns, measures) {
  const named = patternOf(register, patterns, measures);
  return named && !patterns.resting.includes(named) ? measures[named] : 0;
}

/** The measures of a layer's maps, with alignment accuracies where error rates are known. */
export const measureLayer = (register, maps, info, errors, layer) =>
  maps.map((map, head) => {
    const [written, read] = errors?.map((side) => 1 - side[layer][head]) ?? [];
    return { ...measureMap(register, map, info), ...(errors ? { written, read } : {}) };
  });

/** The head of a layer that a walk shows first, its pattern or null, and how clear that is (`opening_heads` of viz_core/lab/walk.py). */
export function openingHead(register, patterns, measured) {
  const clear = measured.map((measures) => clarityOf(register, patterns, measures));
  const rests = measured.map((measures) => patterns.resting.reduce((sum, name) => sum + (measures[name] ?? 0), 0));
  const better = (a, b) => (clear[a] || clear[b] ? clear[b] > clear[a] : rests[b] < rests[a]);
  const head = measured.reduce((best, _, each) => (better(best, each) ? each : best), 0);
  return [head, patternOf(register, patterns, measured[head]), clear[head]];
}

/** Weights of each patch of a picture on all of its patches, with their distances in patches. */
export function patchRows(weights, columns, { grid: [height, width], special }) {
  const patches = Array.from({ length: height * width }, (_, patch) => [Math.floor(patch / width), patch % width]);
  return patches.map(([row, column], from) =>
    patches.map(([otherRow, otherColumn], to) => [weights[(special + from) * columns + special + to], Math.hypot(row - otherRow, column - otherColumn)]),
  );
}

/** Patches that are nearby are at most so far away (viz_core/maps/head_measures/distance.py). */
export const NEARBY = 2;

/** Of each patch its weight on all patches, that on nearby ones, and the sum of all by their distances. */
const patchSums = (weights, columns, image) =>
  patchRows(weights, columns, image).map((row) => {
    const sum = (of) => row.reduce((total, [weight, distance]) => total + weight * of(distance), 0);
    return { mass: sum(() => 1), nearby: sum((distance) => Number(distance <= NEARBY)), distance: sum((distance) => distance) };
  });

/** What is said of the measures that a map has: the register's names and units, in its order, with their largest values. */
export function measuresOf(register, info, map, hasErrors) {
  const known = measureMap(register, map, info);
  const maximum = {
    entropy: Math.log2(Math.max(2, info.columns)), distance: info.image && Math.hypot(...info.image.grid),
    information: Math.log2(Math.max(2, Math.min(info.rows, info.columns))),
  };
  const has = ({ name, unit }) => name in known || (hasErrors && unit === "accuracy");
  return register.filter(has).map(({ name, unit }) => ({ name, unit, maximum: maximum[name] ?? 1 }));
}

/** The largest weight of each bin, at most `size` bins on a side, as torch's adaptive max-pooling bins them. */
export function pooled(weights, rows, columns, size) {
  const [height, width] = [Math.min(size, rows), Math.min(size, columns)];
  const most = new Float32Array(height * width);
  const bin = (i, bins, count) => [Math.floor((i * count) / bins), Math.ceil(((i + 1) * count) / bins)];
  for (let i = 0; i < most.length; i += 1) {
    const [top, bottom] = bin(Math.floor(i / width), height, rows);
    const [left, right] = bin(i % width, width, columns);
    for (let row = top; row < bottom; row += 1) most[i] = Math.max(most[i], ...weights.subarray(row * columns + left, row * columns + right));
  }
  return { height, width, most };
}
