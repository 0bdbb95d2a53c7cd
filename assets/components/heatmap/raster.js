// Bytes as pixels: exactly as many as the screen has.

/**
 * A part of a map as an image of width x height. Larger than the part it repeats cells; smaller,
 * a pixel is the mean of the cells under it, so that what is too fine to be seen fades instead of
 * turning into patterns that are not there.
 */
export function rasterise({ pixels, columns }, shown, palette, width, height) {
  const image = new ImageData(width, height);
  const out = new Uint32Array(image.data.buffer);
  const down = cuts(shown.rows, height);
  const across = cuts(shown.columns, width);
  const line = new Float64Array(shown.columns);
  for (let y = 0; y < height; y += 1) {
    const top = down[y];
    const bottom = Math.max(top + 1, down[y + 1]);
    if (y && top === down[y - 1] && bottom === Math.max(top + 1, down[y])) {
      out.copyWithin(y * width, (y - 1) * width, y * width);
      continue;
    }
    line.fill(0);
    for (let row = top; row < bottom; row += 1) {
      const from = (shown.row + row) * columns + shown.column;
      for (let column = 0; column < line.length; column += 1) line[column] += pixels[from + column];
    }
    for (let x = 0; x < width; x += 1) {
      const left = across[x];
      const right = Math.max(left + 1, across[x + 1]);
      let sum = 0;
      for (let column = left; column < right; column += 1) sum += line[column];
      out[y * width + x] = palette[Math.round(sum / ((bottom - top) * (right - left)))];
    }
  }
  return image;
}

const cuts = (cells, size) => Array.from({ length: size + 1 }, (_, i) => Math.floor((i * cells) / size));
