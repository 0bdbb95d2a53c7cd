// The shipped Transformer: greedy and beam search with a cache, then one pass over the finished translation whose queries
// and keys give every map (viz_core/pretrained/decoding.py and translator.py).

import { callsOf, gatesOf, inputError, largest, loadModel, makeDecoder, mostLikely, pauseAfter, rowsOf, wholes } from "./model.js";
import { clean, isSpelled, openTokenizer, readable, wordNumbers } from "./tokenizers.js";

const MAX_CHARACTERS = 2000;
const MAX_SOURCE_TOKENS = 512;
const MAX_NEW_TOKENS = 256;

/** @param files as `loadModel` takes them, and the tokenizer's */
export async function openTranslator(files, progress) {
  const [{ encoder, decoder: session }, tokenizer] = await Promise.all([loadModel(files, progress), openTokenizer(files.tokenizer)]);
  const decoder = makeDecoder(session);
  const [pad, bos, eos, unknown] = ["<pad>", "<bos>", "<eos>", "<unk>"].map(tokenizer.id);
  const hidden = [pad, bos]; // from the search
  const crossed = session.inputNames.filter((name) => name.includes(".cross."));

  /** Token ids with <eos>; refuses what `Translator.encode` refuses. */
  function encode(text) {
    const length = [...text].length;
    if (length > MAX_CHARACTERS) throw inputError("too-long", { count: length, most: MAX_CHARACTERS });
    const cleaned = clean(text);
    if (!cleaned) throw inputError("empty");
    const ids = tokenizer.encode(cleaned);
    if (!/[\p{L}\p{N}]/u.test(tokenizer.decode(ids.filter((id) => !isSpelled(tokenizer.token(id)))))) throw inputError("unknown");
    if (ids.length >= MAX_SOURCE_TOKENS) throw inputError("too-many", { count: ids.length, most: MAX_SOURCE_TOKENS - 1 });
    return [...ids, eos];
  }

  /** The best of `beam` hypotheses by log p / ((5 + |y|) / 6), as `beam_search` finds it (Wu 2016, equation 14). */
  async function beamSearch(feeds, limit, beam, isStopped, onToken) {
    const penalty = (length) => (5 + length) / 6;
    let past = decoder.noPast();
    let parents = [0];
    let live = [{ ids: [], score: 0, logits: [] }];
    let best = { score: -Infinity, ids: [], logits: [] };
    let width = beam;
    for (let length = 1; length <= limit; length += 1) {
      const made = await decoder.step(live.map(({ ids }) => [ids.at(-1) ?? bos]), past, { ...feeds, rows: wholes(parents, [parents.length]) });
      if (isStopped()) return null;
      const [rows, logP] = [made.logits, made.log_p].map(rowsOf);
      const candidates = rows.flatMap((logits, row) => {
        const others = Math.log1p(-hidden.reduce((sum, id) => sum + Math.exp(logP[row][id]), 0)); // log p of all that are not hidden
        return mostLikely(logits, width, hidden).map((id) => ({ row, id, score: Math.fround(live[row].score + Math.fround(logP[row][id] - others)) }));
      });
      candidates.sort((a, b) => b.score - a.score || a.row - b.row || a.id - b.id);
      const chosen = candidates.slice(0, width).map(({ row, id, score }) => ({ row, score, ids: [...live[row].ids, id], logits: [...live[row].logits, rows[row]] }));
      const isDone = ({ ids }) => ids.at(-1) === eos;
      for (const each of chosen) {
        const score = each.score / penalty(length);
        if ((isDone(each) || length === limit) && score > best.score) best = { score, ids: each.ids, logits: each.logits };
      }
      live = chosen.filter((each) => !isDone(each));
      width -= chosen.length - live.length;
      // log p only falls, so even the most hopeful live hypothesis cannot pass this bound.
      if (!live.length || live[0].score / penalty(limit) <= best.score) break;
      [past, parents] = [decoder.pastOf(made), live.map(({ row }) => row)];
      onToken(live[0].ids);
      await pauseAfter(length);
    }
    return best;
  }

  /** Translate, and record queries and keys of every layer; null where it was stopped. `beam` is 1 for greedy search, `off` heads "GROUP.LAYER.HEAD". */
  async function translate(text, { beam = 1, off = [], isStopped = () => false, onToken = () => {} } = {}) {
    const source = encode(text);
    const limit = Math.min(MAX_NEW_TOKENS, 2 * source.length + 20);
    const encoded = await encoder.run({ source: wholes(source, [1, source.length]), gates: gatesOf(encoder, off, ["encoder-self"]) });
    const feeds = { gates: gatesOf(session, off, ["decoder-self", "cross"]), rows: wholes([0], [1]), ...Object.fromEntries(crossed.map((name) => [name, encoded[name]])) };
    const tell = (ids) => onToken(tokenizer.decode(ids));
    const choose = (logits) => largest(logits, hidden);
    const found = beam === 1 ? await decoder.write([bos], feeds, { limit, end: eos, choose, isStopped, onToken: tell }) : await beamSearch(feeds, limit, beam, isStopped, tell);
    if (!found || isStopped()) return null;
    const target = found.ids;
    const inputs = [bos, ...target.slice(0, -1)];
    const { made, ...scores } = await decoder.reread(inputs, 0, found, feeds);
    const named = Object.entries({ source, target, decoder: inputs }).flatMap(([side, ids]) => {
      const pieces = ids.map(tokenizer.token);
      return [[`${side}Tokens`, pieces.map(readable)], [`${side}Words`, wordNumbers(pieces)]];
    });
    const outputs = { ...encoded, ...made };
    return {
      text: tokenizer.decode(target), source, target, ...Object.fromEntries(named), ...scores,
      sourceText: tokenizer.decode(source),
      numUnknown: source.filter((id) => id === unknown).length,
      isComplete: target.at(-1) === eos,
      outputs, calls: callsOf(outputs, off),
    };
  }

  return { translate, encode, nameOf: (id) => readable(tokenizer.token(id)) };
}
