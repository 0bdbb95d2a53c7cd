// The shipped writer: greedy or sampled with a cache, then one pass over the whole text whose queries and keys give
// every map (viz_core/hub/kinds/decoder.py and viz_core/hub/runs/generation.py).

import { loadFile } from "./files.js";
import { floats, gatesOf, largest, loadModel, logProbability, makeUniform, pause, wholes } from "./model.js";
import { encodeText, makeByteTokenizer, wordsOf } from "./tokenizers.js";

const PAUSE_AFTER = 4; // steps, so that the page stays awake

export const GREEDY = { temperature: 0, topK: 0, seed: 0 };

/**
 * @param files as `loadModel` takes them, and the tokenizer's
 * @param sizes {layers, heads, keyHeads, size, room}
 */
export async function openWriter(files, sizes, progress) {
  const [{ writer }, content] = await Promise.all([loadModel(files, progress), loadFile(files.tokenizer)]);
  const tokenizer = makeByteTokenizer(JSON.parse(new TextDecoder().decode(content)));
  const { layers, heads, keyHeads, size, room } = sizes;
  const [bos, eos] = ["<s>", "</s>"].map(tokenizer.id);
  const numbers = Array.from({ length: layers }, (_, layer) => layer);
  const parts = (of) => numbers.flatMap((layer) => ["keys", "values"].map((part) => of(layer, part)));
  const pastNames = parts((layer, part) => `past.${layer}.${part}`);
  const madeNames = parts((layer, part) => `decoder.${layer}.${part}`);

  const encode = (text) => encodeText(tokenizer, text, room, [bos], []);

  const noPast = () => Object.fromEntries(pastNames.map((name) => [name, floats(new Float32Array(0), [1, keyHeads, 0, size])]));
  const pastOf = (made) => Object.fromEntries(pastNames.map((name, i) => [name, made[madeNames[i]]]));

  const step = (ids, past, gates) => writer.run({ tokens: wholes(ids, [1, ids.length]), gates, ...past });

  /** Ids written after a prompt with the logits of each step; null where it was stopped. */
  async function write(prompt, { newTokens, sampling, gates, isStopped, onToken }) {
    const choose = chooser(sampling);
    const ids = [];
    const logits = [];
    let past = noPast();
    let next = prompt;
    while (ids.length < Math.min(newTokens, room - prompt.length) && ids.at(-1) !== eos) {
      const made = await step(next, past, gates);
      if (isStopped()) return null;
      const vocab = made.logits.dims[2];
      const row = made.logits.data.slice(-vocab);
      const id = choose(row);
      logits.push(row);
      ids.push(id);
      past = pastOf(made);
      next = [id];
      onToken(ids);
      if (ids.length % PAUSE_AFTER === 0) await pause();
    }
    return { ids, logits };
  }

  /**
   * Continue a text, and record queries and keys of every layer.
   *
   * @param options {newTokens, sampling: {temperature, topK, seed}, off: heads "GROUP.LAYER.HEAD", isStopped, onToken}
   * @returns null where it was stopped
   */
  async function run(text, { newTokens = 20, sampling = GREEDY, off = [], isStopped = () => false, onToken = () => {} } = {}) {
    const prompt = encode(text);
    const { gates, offIn } = gatesOf(off, layers, heads);
    const found = await write(prompt, { newTokens, sampling, gates, isStopped, onToken: (ids) => onToken(textOf(ids)) });
    if (!found) return null;
    const ids = [...prompt, ...found.ids];
    const made = await step(ids, noPast(), gates);
    if (isStopped()) return null;
    const vocab = made.logits.dims[2];
    const rowOf = (place) => made.logits.data.subarray(place * vocab, (place + 1) * vocab);
    const whole = found.ids.map((_, i) => rowOf(prompt.length - 1 + i));
    const tokens = tokenizer.read(ids);
    return {
      ids, numPrompt: prompt.length, text: textOf(found.ids),
      joins: found.ids.length > 0 && !tokens[prompt.length].startsWord && !tokens[prompt.length].special,
      tokens: tokens.map(({ label }) => label), words: wordsOf(tokens),
      logProbability: whole.reduce((sum, logits, i) => sum + logProbability(logits, found.ids[i]), 0),
      cacheError: Math.max(0, ...whole.map((logits, i) => logits.reduce((most, value, j) => Math.max(most, Math.abs(value - found.logits[i][j])), 0))),
      isComplete: newTokens === 0 || ids.at(-1) === eos,
      calls: { "decoder-self": numbers.map((layer) => ({ heads, keyHeads, size, causal: true, off: offIn(layer), queries: made[`decoder.${layer}.queries`].data, keys: made[`decoder.${layer}.keys`].data })) },
    };
  }

  const textOf = (ids) => tokenizer.decode(ids);

  return { run, encode };
}

/** Chooses the next token of logits: the likeliest at temperature 0, else a draw from softmax(logits / temperature). */
function chooser({ temperature, topK, seed }) {
  if (!temperature) return (logits) => largest(logits);
  const uniform = makeUniform(seed);
  return (logits) => {
    const scaled = logits.map((logit) => logit / Math.fround(temperature));
    const least = topK && topK < scaled.length ? scaled.toSorted()[scaled.length - topK] : -Infinity;
    // The largest of logit - log(-log u) is a draw from the softmax (Gumbel 1954); each token takes one u, kept or not.
    const noisy = scaled.map((logit) => {
      const noise = Math.fround(Math.log(-Math.log(Math.max(uniform(), 1e-300))));
      return logit < least ? -Infinity : logit - noise;
    });
    return largest(noisy);
  };
}
