// Maps as device pixels: nothing is blurred and no peak is lost.

import { weightOf } from "./store.js";

/**
 * A map as an image of that many pixels. Larger than the map it repeats cells; smaller it keeps
 * the strongest weight of the cells under a pixel, as the thumbnails do; `zero` is the value of weight 0.
 */
export function rasterise({ rows, columns, values }, palette, steps, width, height, zero = 0) {
  const image = new ImageData(width, height);
  const pixels = image.data;
  const cuts = (cells, size) => Array.from({ length: size + 1 }, (_, i) => Math.floor((i * cells) / size));
  const down = cuts(rows, height);
  const across = cuts(columns, width);
  for (let y = 0, p = 0; y < height; y += 1) {
    const bottom = Math.max(down[y] + 1, down[y + 1]);
    for (let x = 0; x < width; x += 1, p += 4) {
      const right = Math.max(across[x] + 1, across[x + 1]);
      let strongest = values[down[y] * columns + across[x]];
      for (let row = down[y]; row < bottom; row += 1) {
        for (let column = across[x]; column < right; column += 1) {
          const value = values[row * columns + column];
          if (Math.abs(value - zero) > Math.abs(strongest - zero)) strongest = value;
        }
      }
      const step = 3 * steps(strongest);
      pixels[p] = palette[step];
      pixels[p + 1] = palette[step + 1];
      pixels[p + 2] = palette[step + 2];
      pixels[p + 3] = 255;
    }
  }
  return image;
}

/** Palette step of a thumbnail's byte, looked up: a grid asks a million times. */
export function byteSteps(paint, most) {
  const steps = Uint8Array.from({ length: 256 }, (_, byte) => paint.step(weightOf(byte, most)));
  return (byte) => steps[byte];
}

/** An image on a canvas of its own, so that any context, a vector one too, can draw it to a size. */
export function onCanvas(image) {
  const canvas = document.createElement("canvas");
  canvas.width = image.width;
  canvas.height = image.height;
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}
