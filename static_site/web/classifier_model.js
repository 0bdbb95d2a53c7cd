// A shipped vision transformer: class probabilities, and queries and keys of every layer.

import { floats, loadModel } from "./model.js";
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
    const gates = new Float32Array(layers * heads).fill(1);
    const places = off.map((place) => place.split(".").slice(1).map(Number));
    for (const [layer, head] of places) gates[layer * heads + head] = 0;
    const feeds = { pixels: floats(pixels, [1, form.mean.length, form.height, form.width]), gates: floats(gates, [layers, heads]) };
    const made = await classifier.run(feeds);
    const calls = Array.from({ length: layers }, (_, layer) => {
      const offHere = places.filter(([each]) => each === layer).map(([, head]) => head);
      return { heads, size, causal: false, off: offHere, queries: made[`encoder.${layer}.queries`].data, keys: made[`encoder.${layer}.keys`].data };
    });
    return { probabilities: softmax(made.logits.data), pixels, seen: { shape: [form.height, form.width, 3], values: seen }, calls };
  }

  return { classify };
}

function softmax(logits) {
  const most = Math.max(...logits);
  const exponentials = [...logits].map((logit) => Math.exp(logit - most));
  const total = exponentials.reduce((sum, value) => sum + value, 0);
  return exponentials.map((value) => value / total);
}
