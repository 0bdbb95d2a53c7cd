// The shipped Transformer: greedy and beam search with a cache, then one pass over the finished translation whose queries
// and keys give every map (viz_core/pretrained/decoding.py and translator.py).

import { loadFile } from "./files.js";
import { floats, InputError, largest, loadModel, logProbability, mostLikely, pause, wholes } from "./model.js";
import { clean, isSpelled, makeTokenizer, readable, wordNumbers } from "./tokenizers.js";

const MAX_CHARACTERS = 2000;
const MAX_SOURCE_TOKENS = 512;
const MAX_NEW_TOKENS = 256;
const PAUSE_AFTER = 8; // steps, so that the page stays awake

/**
 * @param files as `loadModel` takes them, and the tokenizer's
 * @param sizes {layers, heads, size}
 */
export async function openTranslator(files, sizes, progress) {
  const [{ encoder, decoder }, content] = await Promise.all([loadModel(files, progress), loadFile(files.tokenizer)]);
  const tokenizer = makeTokenizer(JSON.parse(new TextDecoder().decode(content)));
  const { layers, heads, size } = sizes;
  const [pad, bos, eos, unknown] = ["<pad>", "<bos>", "<eos>", "<unk>"].map(tokenizer.id);
  const each = (of) => Array.from({ length: layers }, (_, layer) => of(layer));
  const pastNames = each((i) => [`past.${i}.keys`, `past.${i}.values`]).flat();
  const madeNames = each((i) => [`decoder.${i}.self.keys`, `decoder.${i}.self.values`]).flat();

  /** Token ids with <eos>; refuses what `Translator.encode` refuses. */
  function encode(text) {
    const length = [...text].length;
    if (length > MAX_CHARACTERS) throw new InputError("too-long", { count: length, most: MAX_CHARACTERS });
    const cleaned = clean(text);
    if (!cleaned) throw new InputError("empty");
    const ids = tokenizer.encode(cleaned);
    if (!/[\p{L}\p{N}]/u.test(tokenizer.decode(ids.filter((id) => !isSpelled(tokenizer.token(id)))))) throw new InputError("unknown");
    if (ids.length >= MAX_SOURCE_TOKENS) throw new InputError("too-many", { count: ids.length, most: MAX_SOURCE_TOKENS - 1 });
    return [...ids, eos];
  }

  /** 1 for each head that is on: encoder (layers x heads), decoder (2 x layers x heads). */
  function gatesOf(off) {
    const gates = { "encoder-self": 0, "decoder-self": 0, cross: 1 };
    const own = new Float32Array(layers * heads).fill(1);
    const decoders = new Float32Array(2 * layers * heads).fill(1);
    for (const place of off) {
      const [group, layer, head] = place.split(".");
      const at = Number(layer) * heads + Number(head);
      if (group === "encoder-self") own[at] = 0;
      else decoders[gates[group] * layers * heads + at] = 0;
    }
    return { encoder: floats(own, [layers, heads]), decoder: floats(decoders, [2, layers, heads]) };
  }

  const noPast = () => Object.fromEntries(pastNames.map((name) => [name, floats(new Float32Array(0), [1, heads, 0, size])]));

  /** One call of the decoder: tokens of each row, after what is in `past`. */
  async function step(rows, past, context, outputs) {
    const feeds = { tokens: wholes(rows.flat(), [rows.length, rows[0].length]), gates: context.gates, ...past, ...context.crossed };
    return decoder.run(feeds, outputs ?? ["logits", ...madeNames]);
  }

  const pastOf = (made) => Object.fromEntries(pastNames.map((name, i) => [name, made[madeNames[i]]]));

  async function greedy(context, limit, isStopped, onToken) {
    const ids = [];
    const logits = [];
    let past = noPast();
    let token = bos;
    while (ids.length < limit && token !== eos) {
      const made = await step([[token]], past, context);
      if (isStopped()) return null;
      const row = made.logits.data;
      logits.push(row);
      token = largest(row, [pad, bos]);
      ids.push(token);
      past = pastOf(made);
      onToken(ids);
      if (ids.length % PAUSE_AFTER === 0) await pause();
    }
    return { ids, logits };
  }

  /** The best of `beam` hypotheses by log p / ((5 + |y|) / 6), as `beam_search` finds it (Wu 2016, equation 14). */
  async function beamSearch(context, limit, beam, isStopped, onToken) {
    const penalty = (length) => (5 + length) / 6;
    let past = noPast();
    let live = [{ ids: [], score: 0, logits: [] }];
    let best = { score: -Infinity, ids: [], logits: [] };
    let width = beam;
    for (let length = 1; length <= limit; length += 1) {
      const made = await step(live.map(({ ids }) => [ids.at(-1) ?? bos]), past, context);
      if (isStopped()) return null;
      const vocab = made.logits.dims[2];
      const rows = live.map((_, row) => made.logits.data.slice(row * vocab, (row + 1) * vocab));
      const candidates = rows.flatMap((logits, row) => mostLikely(logits, [pad, bos], width).map(({ id, logP }) => ({ row, id, score: Math.fround(live[row].score + logP) })));
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
      past = selectRows(pastOf(made), live.map(({ row }) => row));
      onToken(live[0].ids);
      if (length % PAUSE_AFTER === 0) await pause();
    }
    return best;
  }

  const pieces = (ids) => ids.map(tokenizer.token);

  /**
   * Translate, and record queries and keys of every layer.
   *
   * @param options {beam: 1 for greedy search, off: heads "GROUP.LAYER.HEAD", isStopped, onToken: called with the text so far}
   * @returns null where it was stopped
   */
  async function translate(text, { beam = 1, off = [], isStopped = () => false, onToken = () => {} } = {}) {
    const source = encode(text);
    const limit = Math.min(MAX_NEW_TOKENS, 2 * source.length + 20);
    const gates = gatesOf(off);
    const encoded = await encoder.run({ source: wholes(source, [1, source.length]), gates: gates.encoder });
    const crossed = Object.fromEntries(each((i) => ["keys", "values"].map((part) => `decoder.${i}.cross.${part}`)).flat().map((name) => [name, encoded[name]]));
    const context = { gates: gates.decoder, crossed };
    const tell = (ids) => onToken(tokenizer.decode(ids));
    const found = beam === 1 ? await greedy(context, limit, isStopped, tell) : await beamSearch(context, limit, beam, isStopped, tell);
    if (!found || isStopped()) return null;
    const target = found.ids;
    const inputs = [bos, ...target.slice(0, -1)];
    const made = await step([inputs], noPast(), context, decoder.outputNames);
    const vocab = made.logits.dims[2];
    const rows = target.map((_, row) => made.logits.data.subarray(row * vocab, (row + 1) * vocab));
    const offIn = (group, layer) => off.map((place) => place.split(".")).filter(([each, i]) => each === group && Number(i) === layer).map(([, , head]) => Number(head));
    const callsOf = (group, causal, of) => each((i) => ({ heads, size, causal, off: offIn(group, i), ...Object.fromEntries(["queries", "keys"].map((part, side) => [part, of(i)[side].data])) }));
    return {
      text: tokenizer.decode(target),
      source, target,
      sourceTokens: pieces(source).map(readable), targetTokens: pieces(target).map(readable), decoderTokens: pieces(inputs).map(readable),
      sourceWords: wordNumbers(pieces(source)), targetWords: wordNumbers(pieces(target)), decoderWords: wordNumbers(pieces(inputs)),
      sourceText: tokenizer.decode(source),
      logProbability: rows.reduce((sum, logits, i) => sum + logProbability(logits, target[i]), 0),
      cacheError: Math.max(...rows.map((logits, i) => logits.reduce((most, value, j) => Math.max(most, Math.abs(value - found.logits[i][j])), 0))),
      numUnknown: source.filter((id) => id === unknown).length,
      isComplete: target.at(-1) === eos,
      outputs: { encoder: encoded, decoder: made, logits: rows },
      calls: {
        "encoder-self": callsOf("encoder-self", false, (i) => [encoded[`encoder.${i}.self.queries`], encoded[`encoder.${i}.self.keys`]]),
        "decoder-self": callsOf("decoder-self", true, (i) => [made[`decoder.${i}.self.queries`], made[`decoder.${i}.self.keys`]]),
        cross: callsOf("cross", false, (i) => [made[`decoder.${i}.cross.queries`], encoded[`decoder.${i}.cross.keys`]]),
      },
    };
  }

  return { translate, encode, nameOf: (id) => readable(tokenizer.token(id)) };
}

/** Rows of keys and values in this order, as beam search selects them. */
function selectRows(past, rows) {
  return Object.fromEntries(
    Object.entries(past).map(([name, { data, dims }]) => {
      const length = dims[1] * dims[2] * dims[3];
      const selected = new Float32Array(rows.length * length);
      rows.forEach((row, i) => selected.set(data.subarray(row * length, (row + 1) * length), i * length));
      return [name, floats(selected, [rows.length, ...dims.slice(1)])];
    }),
  );
}
