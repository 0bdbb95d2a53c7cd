// Graphs of ONNX with their weights, run by onnxruntime-web on one thread.

import * as ort from "./vendor/onnxruntime-web/ort.wasm.bundle.min.mjs";
import { loadFile, unzip } from "./files.js";
import { sinusoids } from "./sinusoids.js";

const WEIGHTS = "weights"; // as the graphs call it (static_site/onnx_files.py)

/**
 * Load the runtime, the weights and the graphs of a model.
 *
 * @param files {runtime, weights, index, graphs: {name: file}}, each a file as `loadFile` takes it
 * @param {(share: {done: number, total: number}) => void} progress of what is loaded, in bytes
 * @returns the sessions by name
 */
export async function loadModel(files, progress = () => {}) {
  const all = [files.runtime, files.weights, files.index, ...Object.values(files.graphs)];
  const total = all.reduce((sum, { bytes }) => sum + bytes, 0);
  let done = 0;
  const arrived = (count) => progress({ done: (done += count), total });
  const [runtime, weights, index, ...graphs] = await Promise.all(all.map((file) => loadFile(file, arrived)));
  performance.mark("arrived");
  Object.assign(ort.env.wasm, { numThreads: 1, wasmBinary: await unzip(runtime) });
  const data = unpackWeights(new Uint8Array(await unzip(weights)), JSON.parse(new TextDecoder().decode(index)));
  const sessions = {};
  for (const [i, name] of Object.keys(files.graphs).entries()) {
    sessions[name] = await ort.InferenceSession.create(new Uint8Array(graphs[i]), {
      executionProviders: ["wasm"],
      externalData: [{ path: WEIGHTS, data }],
    });
  }
  return sessions;
}

/** Weights as float32 at the places that the graphs name, from float16 in two planes: all lower bytes, then all higher. */
export function unpackWeights(planes, { bytes, tensors }) {
  const numbers = new Float32Array(bytes / 4);
  const values = float16Values();
  const half = planes.length / 2;
  let at = 0;
  for (const { offset, count, made } of tensors) {
    if (made) {
      numbers.set(sinusoids(...made.sinusoids), offset / 4);
      continue;
    }
    for (let i = offset / 4; i < offset / 4 + count; i += 1, at += 1) numbers[i] = values[planes[at] | (planes[half + at] << 8)];
  }
  if (at !== half) throw new Error(`weights: expected ${half} numbers, got ${at}`);
  return new Uint8Array(numbers.buffer);
}

/** The number that each 16 bits stand for (IEEE 754 binary16). */
function float16Values() {
  return Float32Array.from({ length: 2 ** 16 }, (_, bits) => {
    const sign = bits >> 15 ? -1 : 1;
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    if (exponent === 31) return fraction ? NaN : sign * Infinity;
    return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : (fraction / 1024) * 2 ** -14);
  });
}

export const floats = (values, dims) => new ort.Tensor("float32", values, dims);
export const wholes = (values, dims) => new ort.Tensor("int64", BigInt64Array.from(values, BigInt), dims);
