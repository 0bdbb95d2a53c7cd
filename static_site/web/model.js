// Graphs of ONNX with their weights, run by onnxruntime-web on one thread.

import * as ort from "./vendor/onnxruntime-web/ort.wasm.bundle.min.mjs";
import { loadFile, unzip } from "./files.js";
import { float16Values } from "./float16.js";
import { sinusoids } from "./sinusoids.js";

const WEIGHTS = "weights"; // as the graphs call it (static_site/onnx_files.py)

const OPTIONS = { executionProviders: ["wasm"] };

let runtime = null; // once for all models of a page

/**
 * Load the runtime, the weights and the graphs of a model.
 *
 * @param files {runtime, empty, weights, index, graphs: {name: file}}, each a file as `loadFile` takes it
 * @param {(share: {done: number, total: number}) => void} progress of what is loaded, in bytes
 * @returns the sessions by name
 */
export async function loadModel(files, progress = () => {}) {
  const all = [files.runtime, files.empty, files.weights, files.index, ...Object.values(files.graphs)];
  const total = all.reduce((sum, { bytes }) => sum + bytes, 0);
  let done = 0;
  const load = (file) => loadFile(file, (count) => progress({ done: (done += count), total }));
  const parts = Promise.all([load(files.runtime), load(files.empty)]);
  runtime ??= parts.then(startRuntime);
  const started = runtime;
  const [weights, index, ...graphs] = await Promise.all([files.weights, files.index, ...Object.values(files.graphs)].map(load));
  performance.mark("arrived");
  const data = unpackWeights(new Uint8Array(await unzip(weights)), JSON.parse(new TextDecoder().decode(index)));
  await started;
  const sessions = {};
  for (const [i, name] of Object.keys(files.graphs).entries()) {
    sessions[name] = await ort.InferenceSession.create(new Uint8Array(graphs[i]), { ...OPTIONS, externalData: [{ path: WEIGHTS, data }] });
  }
  return sessions;
}

/** Compile the runtime, while weights are still on their way. */
async function startRuntime([program, empty]) {
  Object.assign(ort.env.wasm, { numThreads: 1, wasmBinary: await unzip(program) });
  const session = await ort.InferenceSession.create(new Uint8Array(empty), OPTIONS);
  await session.release();
}

/** Weights as float32 where the graphs look for them, from float16 in two planes: all lower bytes, then all higher. */
export function unpackWeights(planes, { bytes, tensors }) {
  const numbers = new Float32Array(bytes / 4);
  const values = float16Values();
  const half = planes.length / 2;
  let at = 0;
  for (const { shape, offset, transposed, made } of tensors) {
    const count = shape.reduce((product, side) => product * side, 1);
    let tensor = made && sinusoids(...made.sinusoids);
    if (!tensor) {
      tensor = new Float32Array(count);
      for (let i = 0; i < count; i += 1, at += 1) tensor[i] = values[planes[at] | (planes[half + at] << 8)];
    }
    if (offset !== null) numbers.set(tensor, offset / 4);
    if (transposed !== null) transpose(tensor, shape, numbers.subarray(transposed / 4, transposed / 4 + count));
  }
  if (at !== half) throw new Error(`weights: expected ${half} numbers, got ${at}`);
  return new Uint8Array(numbers.buffer);
}

/** Tile by tile: what is written lies close together, as what is read does. */
function transpose(tensor, [rows, columns], into) {
  const TILE = 32;
  for (let top = 0; top < rows; top += TILE)
    for (let left = 0; left < columns; left += TILE)
      for (let row = top; row < Math.min(top + TILE, rows); row += 1)
        for (let column = left; column < Math.min(left + TILE, columns); column += 1) into[column * rows + row] = tensor[row * columns + column];
}

/** Gates (layers, heads) of a stack: 0 for the heads "GROUP.LAYER.HEAD" that are off, 1 for the others; and those of a layer. */
export function gatesOf(off, layers, heads) {
  const gates = new Float32Array(layers * heads).fill(1);
  const places = off.map((place) => place.split(".").slice(1).map(Number));
  for (const [layer, head] of places) gates[layer * heads + head] = 0;
  const offIn = (layer) => places.filter(([each]) => each === layer).map(([, head]) => head);
  return { gates: floats(gates, [layers, heads]), offIn };
}

export const floats = (values, dims) => new ort.Tensor("float32", values, dims);
export const wholes = (values, dims) => new ort.Tensor("int64", BigInt64Array.from(values, BigInt), dims);
