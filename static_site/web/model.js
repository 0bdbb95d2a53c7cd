// Graphs of ONNX with their weights, run by onnxruntime-web on one thread; inputs that a model cannot take; a decoder with its
// cache, and tokens chosen by their logits.

import { loadFile, unzip } from "./page.js";
import * as ort from "./vendor/onnxruntime-web/ort.wasm.bundle.min.mjs";

const WEIGHTS = "weights"; // as the graphs call it (static_site/model_files.py)
const OPTIONS = { executionProviders: ["wasm"] };
let starting = null; // the runtime, once for all models of a page

/**
 * The sessions of a model's graphs by their names, of files as `loadFile` takes them.
 *
 * @param {(share: {done: number, total: number}) => void} progress of what is loaded, in bytes
 */
export async function loadModel({ runtime, weights, graphs }, progress = () => {}) {
  const all = [runtime, weights, ...Object.values(graphs)];
  const total = all.reduce((sum, { bytes }) => sum + bytes, 0);
  let done = 0;
  const load = (file) => loadFile(file, (count) => progress({ done: (done += count), total }));
  const arriving = all.map(load);
  const start = async (program) => {
    Object.assign(ort.env.wasm, { numThreads: 1, wasmBinary: await unzip(program) });
    await ort.InferenceSession.create(new Uint8Array(0), OPTIONS).catch(() => {}); // of no graph: it fails, but has compiled the runtime
  };
  starting ??= arriving[0].then(start).catch(() => (starting = null)); // while weights are on their way; what fails, fails again below
  const [, packed, ...loaded] = await Promise.all(arriving);
  performance.mark("arrived");
  await starting;
  const externalData = [{ path: WEIGHTS, data: new Uint8Array(await unzip(packed)) }];
  const sessions = {};
  for (const [i, name] of Object.keys(graphs).entries()) {
    sessions[name] = await ort.InferenceSession.create(new Uint8Array(loaded[i]), { ...OPTIONS, externalData });
  }
  return sessions;
}

export const shapeOf = ({ inputMetadata }, input) => inputMetadata.find(({ name }) => name === input).shape;

/** Gates of a graph, (layers, heads) of a group or (groups, layers, heads): 0 for the heads "GROUP.LAYER.HEAD" that are off, else 1. */
export function gatesOf(session, off, groups) {
  const shape = shapeOf(session, "gates");
  const [layers, heads] = shape.slice(-2);
  const gateOf = (group) => (_, i) => Number(!off.includes(`${group}.${Math.floor(i / heads)}.${i % heads}`));
  return floats(Float32Array.from(groups.flatMap((group) => Array.from({ length: layers * heads }, gateOf(group)))), shape);
}

/** The group of maps of a kind of attention, "self" or "cross", in a stack. */
export const groupOf = (stack, kind) => (kind === "cross" ? kind : `${stack}-${kind}`);

/** What the maps of each group are computed of, layer by layer: queries and keys, by the names that graphs give them. */
export function callsOf(outputs, off = []) {
  const calls = {};
  for (const [name, { data: queries, dims: [, heads, , size] }] of Object.entries(outputs)) {
    const [, stack, layer, kind] = /^(\w+)\.(\d+)\.(\w+)\.queries$/.exec(name) ?? [];
    if (!stack) continue;
    const group = groupOf(stack, kind);
    const { data: keys, dims: [, keyHeads] } = outputs[name.replace("queries", "keys")];
    const offHere = Array.from({ length: heads }, (_, head) => head).filter((head) => off.includes(`${group}.${layer}.${head}`));
    calls[group] ??= [];
    calls[group][layer] = { heads, keyHeads, size, causal: group === "decoder-self", off: offHere, queries, keys };
  }
  return calls;
}

export const floats = (values, dims) => new ort.Tensor("float32", values, dims);
export const bytes = (values, dims) => new ort.Tensor("uint8", values, dims);
export const wholes = (values, dims) => new ort.Tensor("int64", BigInt64Array.from(values, BigInt), dims);

/** The last axis of a tensor, for each place of the others: the numbers of a vocabulary for each token; copies, as a search stores some. */
export function rowsOf({ data, dims }) {
  const length = dims.at(-1);
  return Array.from({ length: data.length / length }, (_, row) => data.slice(row * length, (row + 1) * length));
}

/** An input that is refused; its message is the name of the sentence that says why. */
export const inputError = (sentence, values = {}) => Object.assign(new Error(sentence), { name: "InputError", values });

const PAUSE_AFTER = 6; // steps, so that the page stays awake

/** Let the page draw and answer, now and then. */
export const pauseAfter = (steps) => (steps % PAUSE_AFTER === 0 ? new Promise((resolve) => setTimeout(resolve)) : null);

/** A decoder's graph with its cache: the keys and values "past.LAYER.PART" that it takes, as it made them in the step before. */
export function makeDecoder(session) {
  const parts = session.inputNames.filter((name) => name.startsWith("past.")).map((past) => [past, past.replace(/past\.(\d+)/, "decoder.$1.self")]);
  const noPastOf = (past) => floats(new Float32Array(0), shapeOf(session, past).map((side, axis) => [1, side, 0, side][axis]));
  const noPast = () => Object.fromEntries(parts.map(([past]) => [past, noPastOf(past)]));
  const pastOf = (made) => Object.fromEntries(parts.map(([past, name]) => [past, made[name]]));

  /** One call: tokens of each row, after what is in `past`; all outputs with `whole`, else what the next step needs. */
  const step = (rows, past, feeds, whole = false) =>
    session.run({ tokens: wholes(rows.flat(), [rows.length, rows[0].length]), ...past, ...feeds }, whole ? session.outputNames : ["logits", "log_p", ...parts.map(([, name]) => name)]);

  /** Tokens that `choose` takes after a prompt, until `end` or so many, with the logits of each; null where it was stopped. */
  async function write(prompt, feeds, { limit, end, choose, isStopped, onToken }) {
    const [ids, logits] = [[], []];
    let [past, next] = [noPast(), prompt];
    while (ids.length < limit && ids.at(-1) !== end) {
      const made = await step([next], past, feeds);
      if (isStopped()) return null;
      logits.push(rowsOf(made.logits).at(-1));
      ids.push(choose(logits.at(-1)));
      [past, next] = [pastOf(made), [ids.at(-1)]];
      onToken(ids);
      await pauseAfter(ids.length);
    }
    return { ids, logits };
  }

  /** One pass over all of a text, of which `found` was written from the logits of `start` on, and how far those of the cache are off. */
  async function reread(ids, start, found, feeds) {
    const made = await step([ids], noPast(), feeds, true);
    const [rows, logP] = [made.logits, made.log_p].map((each) => rowsOf(each).slice(start));
    const offBy = (logits, other) => logits.reduce((most, value, i) => Math.max(most, Math.abs(value - other[i])), 0);
    return {
      made, logProbability: found.ids.reduce((sum, id, i) => sum + logP[i][id], 0),
      cacheError: Math.max(0, ...found.logits.map((logits, i) => offBy(logits, rows[i]))),
    };
  }

  return { step, write, reread, noPast, pastOf };
}

/** Ids of the `count` most likely tokens, the first of equal ones first, but for those left out. */
export function mostLikely(logits, count, without = []) {
  const found = [];
  for (let id = 0; id < logits.length; id += 1) {
    if ((found.length === count && logits[id] <= logits[found.at(-1)]) || without.includes(id)) continue;
    const place = found.findIndex((other) => logits[id] > logits[other]);
    found.splice(place < 0 ? found.length : place, 0, id);
    if (found.length > count) found.pop();
  }
  return found;
}

/** The most likely of all tokens but those left out. */
export const largest = (logits, without) => mostLikely(logits, 1, without)[0];
