// A shipped vision transformer: class probabilities, and queries and keys of every layer.

import { floats, gatesOf, loadModel } from "./model.js";
import { prepare } from "./pictures.js";

/**
 * @param files as `loadModel` takes them
 * @param model {sizes: {layers, heads, size, grid}, pixels: as `prepare` takes them}
 */
export async function openClassifier(files, { sizes, pixels: form }, progress) {
  const { classifier } = await loadModel(files, progress);
  const { layers, heads, size } = sizes;

  /** @param off heads "GROUP.LAYER.HEAD" that are switched off */
  async function classify(picture, off = []) {
    const { pixels, seen } = prepare(picture, form);
    const { gates, offIn } = gatesOf(off, layers, heads);
    const made = await classifier.run({ pixels: floats(pixels, [1, form.mean.length, form.height, form.width]), gates });
    const calls = encoderCalls(made, { layers, heads, size }, offIn);
    return { probabilities: softmax(made.logits.data), pixels, seen: { shape: [form.height, form.width, 3], values: seen }, calls };
  }

  return { classify };
}

/** What the maps of an encoder are computed of, layer by layer. */
export const encoderCalls = (made, { layers, heads, size }, offIn) =>
  Array.from({ length: layers }, (_, layer) => ({ heads, size, causal: false, off: offIn(layer), queries: made[`encoder.${layer}.queries`].data, keys: made[`encoder.${layer}.keys`].data }));

export function softmax(logits) {
  const most = Math.max(...logits);
  const exponentials = [...logits].map((logit) => Math.exp(logit - most));
  const total = exponentials.reduce((sum, value) => sum + value, 0);
  return exponentials.map((value) => value / total);
}
