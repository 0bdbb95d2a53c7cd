// The shipped writer: greedy or sampled with a cache, then one pass over the whole text whose queries and keys give
// every map (viz_core/hub/kinds/decoder.py and viz_core/hub/runs/generation.py).

import { callsOf, gatesOf, largest, loadModel, makeDecoder, makeUniform } from "./model.js";
import { encodeText, openTokenizer, readTokens, wordsOf } from "./tokenizers.js";

const GROUP = "decoder-self";

/**
 * @param files as `loadModel` takes them, and the tokenizer's
 * @param sizes {layers, heads, keyHeads, size, room}
 */
export async function openWriter(files, sizes, progress) {
  const [{ writer }, tokenizer] = await Promise.all([loadModel(files, progress), openTokenizer(files.tokenizer)]);
  const decoder = makeDecoder(writer, sizes);
  const end = tokenizer.id("</s>");
  const textOf = (ids) => tokenizer.decode(ids).replace(/^ +| +$/gu, "");

  /**
   * Continue a text, and record queries and keys of every layer.
   *
   * @param options {newTokens, sampling: {temperature, topK, seed}, off: heads "GROUP.LAYER.HEAD", isStopped, onToken}
   * @returns null where it was stopped
   */
  async function run(text, { newTokens = 20, sampling = {}, off = [], isStopped = () => false, onToken = () => {} } = {}) {
    const prompt = encodeText(tokenizer, text, sizes.room);
    const feeds = { gates: gatesOf(off, [GROUP], sizes) };
    const limit = Math.min(newTokens, sizes.room - prompt.length);
    const found = await decoder.write(prompt, feeds, { limit, end, choose: chooser(sampling), isStopped, onToken: (ids) => onToken(textOf(ids)) });
    if (!found) return null;
    const ids = [...prompt, ...found.ids];
    const { made, logProbability, cacheError } = await decoder.reread(ids, prompt.length - 1, found, feeds);
    if (isStopped()) return null;
    const tokens = readTokens(tokenizer, ids);
    return {
      ids, numPrompt: prompt.length, text: textOf(found.ids), logProbability, cacheError,
      joins: found.ids.length > 0 && !tokens[prompt.length].startsWord && !tokens[prompt.length].special,
      tokens: tokens.map(({ label }) => label), words: wordsOf(tokens),
      isComplete: newTokens === 0 || ids.at(-1) === end,
      calls: { [GROUP]: callsOf(GROUP, off, sizes, true, (i) => [made[`decoder.${i}.self.queries`], made[`decoder.${i}.self.keys`]]) },
    };
  }

  return { run };
}

/** Chooses the next token of logits: the likeliest at temperature 0, else a draw from softmax(logits / temperature). */
function chooser({ temperature = 0, topK = 0, seed = 0 }) {
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
