// Whole exact maps, as sent by Python or combined from heads that have arrived.

import { writeHeads } from "./state.js";
import { groupOf, partOf } from "./store.js";

/** A map's name within a request (viz_core/view/requests.py). */
export const mapName = ({ input, group, heads, how, unit }) => `${input}.${group}:${writeHeads(heads)}:${how}:${unit}`;

const MOST_DERIVED = 24;

/** All cells of a short map as float32, or null until they are here. */
export function wholeMap(view, source) {
  const { store } = view;
  const name = mapName(source);
  const sent = store.parts.get(`map ${name}`);
  if (sent) return sent.values;
  if (store.derived.has(name)) return store.derived.get(name);
  const maps = source.heads.map(
    (head) => store.parts.get(`map ${mapName({ ...source, heads: [head], how: "mean", unit: "tokens" })}`)?.values,
  );
  if (!maps.length || maps.includes(undefined)) return partOf(view, `map ${name}`)?.values ?? null;
  const group = groupOf(view, source.input, source.group);
  let values = combineMaps(maps, source.how);
  if (source.unit === "words") values = mergeWords(values, group);
  store.derived.set(name, values);
  if (store.derived.size > MOST_DERIVED) store.derived.delete(store.derived.keys().next().value);
  return values;
}

/** Heads as one map: the mean weight or the largest (viz_core.maps.measures.combine_heads). */
export function combineMaps(maps, how) {
  if (maps.length === 1) return maps[0];
  const out = new Float32Array(maps[0].length);
  for (let i = 0; i < out.length; i += 1) {
    let folded = 0;
    for (const map of maps) folded = how === "max" ? Math.max(folded, map[i]) : folded + map[i];
    out[i] = how === "max" ? folded : folded / maps.length;
  }
  return out;
}

/** Tokens to words: rows averaged, columns summed (viz_core.maps.word_maps.merge_words). */
function mergeWords(values, { query_tokens: queries, key_tokens: keys, query_words: rowWords, key_words: columnWords }) {
  const rowOf = rowWords ?? queries.map((_, i) => i);
  const columnOf = columnWords ?? keys.map((_, i) => i);
  const rows = rowOf[rowOf.length - 1] + 1;
  const columns = columnOf[columnOf.length - 1] + 1;
  const sums = new Float64Array(rows * columns);
  const sizes = new Uint32Array(rows);
  rowOf.forEach((row, i) => {
    sizes[row] += 1;
    for (let j = 0; j < keys.length; j += 1) sums[row * columns + columnOf[j]] += values[i * keys.length + j];
  });
  return Float32Array.from(sums, (sum, i) => sum / sizes[Math.floor(i / columns)]);
}
