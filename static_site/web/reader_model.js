// The shipped reader: the probabilities of every token at each masked one, and queries and keys of every layer
// (viz_core/hub/kinds/encoder.py).

import { encodeText, makeByteTokenizer, wordsOf } from "./byte_tokenizer.js";
import { encoderCalls, softmax } from "./classifier_model.js";
import { loadFile } from "./files.js";
import { gatesOf, loadModel, wholes } from "./model.js";

/**
 * @param files as `loadModel` takes them, and the tokenizer's
 * @param sizes {layers, heads, size, room}
 */
export async function openReader(files, sizes, progress) {
  const [{ reader }, content] = await Promise.all([loadModel(files, progress), loadFile(files.tokenizer)]);
  const tokenizer = makeByteTokenizer(JSON.parse(new TextDecoder().decode(content)));
  const { layers, heads, room } = sizes;
  const [bos, eos, mask] = ["<s>", "</s>", "<mask>"].map(tokenizer.id);

  /** A text's words, each with its number in maps, its token ids and their places; special tokens are none. */
  function wordsIn(ids, tokens, numbers) {
    const found = new Map();
    for (const [place, number] of numbers.entries()) {
      if (tokens[place].special && ids[place] !== mask) continue;
      if (!found.has(number)) found.set(number, { number, ids: [], places: [] });
      found.get(number).ids.push(ids[place]);
      found.get(number).places.push(place);
    }
    return [...found.values()];
  }

  /**
   * Read a text, and predict the tokens that are masked.
   *
   * @param masked numbers of words whose tokens with letters or digits are masked
   * @param off heads "GROUP.LAYER.HEAD" that are switched off
   * @returns `parts`: the words; `chances`: by the place of a mask the probability of every token; `logits`: tokens x vocabulary
   */
  async function read(text, masked = [], off = []) {
    const given = encodeText(tokenizer, text, room, [bos], [eos]);
    const before = tokenizer.read(given);
    const numbers = wordsOf(before);
    const isMasked = (place) => masked.includes(numbers[place]) && !before[place].special && /[\p{L}\p{N}]/u.test(before[place].text);
    const ids = given.map((id, place) => (isMasked(place) ? mask : id));
    const { gates, offIn } = gatesOf(off, layers, heads);
    const made = await reader.run({ tokens: wholes(ids, [1, ids.length]), gates });
    const logits = made.logits.data;
    const vocab = made.logits.dims[2];
    const places = ids.flatMap((id, place) => (id === mask ? [place] : []));
    const chances = new Map(places.map((place) => [place, softmax(logits.subarray(place * vocab, (place + 1) * vocab))]));
    const tokens = tokenizer.read(ids).map(({ label }) => label);
    return { ids, logits, chances, tokens, words: numbers, parts: wordsIn(ids, before, numbers), calls: encoderCalls(made, sizes, offIn) };
  }

  return { read, label: (id) => tokenizer.read([id])[0].label, textOf: (ids) => tokenizer.decode(ids) };
}
