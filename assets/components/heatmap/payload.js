// A heatmap as Python describes it (ui/widgets/heatmap_payload.py), with a value for every cell.

import { readFrame } from "../shared/frame.js";

export function readHeatmap(bytes) {
  const { header, buffer, start } = readFrame(bytes);
  const { rows, columns, low, high, exact } = header;
  const pixels = new Uint8Array(buffer, start + header.pixels, rows * columns);
  const numbers = (Kind, count) => {
    const from = start + exact.offset;
    return new Kind(buffer.slice(from, from + count * Kind.BYTES_PER_ELEMENT));
  };
  return { header, rows, columns, pixels, value: valueOfCells() };

  /** The value of a cell: exact where Python sent what it takes, else what its 8 bits say. */
  function valueOfCells() {
    if (exact?.kind === "sinusoid") {
      const frequencies = numbers(Float64Array, Math.ceil(columns / 2));
      return (row, column) => (column % 2 ? Math.cos : Math.sin)(row * frequencies[column >> 1]);
    }
    if (exact?.kind === "cells") {
      const cells = numbers(Float32Array, rows * columns);
      return (row, column) => cells[row * columns + column];
    }
    return (row, column) => low + (pixels[row * columns + column] / 255) * (high - low);
  }
}
