// A figure as Python describes it (ui/widgets/chart_payload.py).

import { readFrame } from "../shared/frame.js";

const ARRAYS = {
  int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array,
  int32: Int32Array, uint32: Uint32Array, float32: Float32Array, float64: Float64Array,
};

/** The figure, fresh at every call: plotly writes into what it is given. */
export function readChart(bytes) {
  const { header, buffer, start } = readFrame(bytes);
  return revive(header);

  function revive(value) {
    if (Array.isArray(value)) return value.map(revive);
    if (value === null || typeof value !== "object") return value;
    if (value.dtype && value.shape) return numbers(value);
    for (const [name, each] of Object.entries(value)) value[name] = revive(each);
    return value;
  }

  function numbers({ dtype, at, shape }) {
    const Kind = ARRAYS[dtype];
    const [rows, columns] = shape;
    const count = rows * (columns ?? 1);
    const from = start + at;
    const all = new Kind(buffer.slice(from, from + count * Kind.BYTES_PER_ELEMENT));
    if (columns === undefined) return all;
    return Array.from({ length: rows }, (_, row) => all.subarray(row * columns, (row + 1) * columns));
  }
}
