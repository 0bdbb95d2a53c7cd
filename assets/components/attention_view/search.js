// Search: the keys of a word, and the weight on them, from Python (viz_core/view/computed_maps.py).

import { openGroup, partOf } from "./store.js";
import { onPicture } from "./state.js";

const QUICK_WEIGHTS = 2 ** 26; // what is asked for at once needs no more weights than this, or is one layer

/** Letters without accents or case. */
const plainOf = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().trim();

/** The keys whose word is the one typed, or contains it where none is equal. */
export function findKeys(view) {
  const wanted = plainOf(view.search);
  if (!wanted || onPicture(view)) return [];
  const { key_tokens: tokens, key_words: numbers } = openGroup(view);
  const name = `${view.store.stamp} ${view.state.group} ${wanted}`;
  if (view.found?.name === name) return view.found.keys;
  const wordOf = (i) => (numbers ? numbers[i] : i);
  const words = [];
  tokens.forEach((token, i) => (words[wordOf(i)] = (words[wordOf(i)] ?? "") + (numbers ? token.replace(/^##/, "") : token)));
  const plain = words.map(plainOf);
  const fits = plain.includes(wanted) ? (word) => word === wanted : (word) => word.includes(wanted);
  const keys = tokens.map((_, i) => i).filter((i) => fits(plain[wordOf(i)]));
  view.found = { name, keys, at: -1 };
  return keys;
}

export const isSearching = (view) => findKeys(view).length > 0;

export const keysName = (view, layer) => `keys 0 ${view.state.group} ${layer}`;

/** The mean weight on the word that is looked for, by one head; null until it is here. */
export function weightOnWord(view, layer, head) {
  const part = view.store.parts.get(keysName(view, layer));
  if (!part) return null;
  const [, , count] = part.shape;
  return findKeys(view).reduce((sum, key) => sum + part.values[2 * head * count + key], 0);
}

/** Ask for the weights of all layers, the nearest first, no more at once than come quickly. */
export function wantWeights(view) {
  if (!isSearching(view)) return;
  const { layers, query_tokens: queries, key_tokens: keys } = openGroup(view);
  const missing = layers.map((_, layer) => layer).filter((layer) => !view.store.parts.has(keysName(view, layer)));
  missing.sort((a, b) => Math.abs(a - view.state.layer) - Math.abs(b - view.state.layer));
  let room = QUICK_WEIGHTS;
  for (const [i, layer] of missing.entries()) {
    room -= queries.length * keys.length * layers[layer].heads;
    if (i && room < 0) break;
    partOf(view, keysName(view, layer));
  }
}
