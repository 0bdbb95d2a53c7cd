// Colours: viridis or the reader's choice for weights, red and blue for differences, the theme's for the rest; and maps
// as device pixels, where nothing is blurred and no peak is lost.

import { hexOf, luminance, makePalette, rgbOf } from "../shared/canvas.js";
import { weightOf } from "./store.js";

const STOPS = {
  // Points of viridis and magma (van der Walt and Smith 2015) and cividis (Nuñez 2018); all read without colour vision.
  viridis: ["#440154", "#482878", "#3e4a89", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6dcd59", "#b4de2c", "#fde725"],
  cividis: ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"],
  magma: ["#000004", "#180f3d", "#440f76", "#721f81", "#9e2f7f", "#cd4071", "#f1605d", "#fd9668", "#feca8d", "#fcfdbf"],
  greys: ["#f7f7f7", "#e3e3e3", "#cbcbcb", "#adadad", "#8c8c8c", "#6e6e6e", "#525252", "#363636", "#1d1d1d", "#000000"],
  // RdBu (Brewer 2003), white at no difference.
  signed: ["#053061", "#2166ac", "#4393c3", "#92c5de", "#d1e5f0", "#f7f7f7", "#fddbc7", "#f4a582", "#d6604d", "#b2182b", "#67001f"],
};

// Of one head after the other where several are drawn as links: first the weights' purple, of one head; neither the
// queries' blue nor the keys' orange.
const HEAD_COLOURS = {
  light: ["#a34b82", "#0b6e66", "#8a6d00", "#4d4d4d", "#5a3fc0", "#2e7d32", "#a03c2c", "#2b8fb5"],
  dark: ["#d68fbb", "#4fd0c0", "#f0d442", "#b8b8b8", "#b7a5ff", "#7fd389", "#ff9e8a", "#8fd0f5"],
};

/** Of what leaves the page, whatever it wears there: plain colours that every reader of SVG takes. */
export const PRINTED = {
  text: "#1d2125", quiet: "#5a6065", queries: "#0072b2", keys: "#b05207", mark: "#d55e00", paper: "#ffffff", heads: HEAD_COLOURS.light,
};

// Where a weight from 0 to 1 stands between no colour and full colour. The root and the logarithm keep small ones apart.
const LOG_DECADES = 4;
const SCALES = {
  linear: (weight) => weight,
  sqrt: (weight) => Math.sqrt(weight),
  log: (weight) => (weight <= 0 ? 0 : 1 + Math.log10(weight) / LOG_DECADES),
};
export const TICKS = { linear: [0, 0.5, 1], sqrt: [0, 0.1, 0.5, 1], log: [0.0001, 0.01, 1] };

/** Values to colours: {palette, step(value), css(step), ink(step), most}; they end at `most`. */
export function makePaint(scaleName, paletteName, signed, most = 1) {
  const palette = makePalette(STOPS[signed ? "signed" : paletteName]);
  const grow = (weight) => Math.max(0, Math.min(1, SCALES[scaleName](Math.min(Math.abs(weight) / most, 1))));
  const step = signed
    ? (value) => Math.round((1 + Math.sign(value) * grow(value)) * 127.5)
    : (value) => Math.round(grow(Math.max(0, value)) * 255);
  const css = (at) => hexOf(palette[at]);
  // White or near-black, whichever reads better (they tie at luminance 0.2).
  const ink = (at) => (luminance(new Uint8Array(palette.buffer, 4 * at, 3)) > 0.2 ? "#14181a" : "#ffffff");
  return { palette, step, css, ink, grow, signed, most };
}

/** Give the style sheet what the theme holds as a list or does not say, and the canvas its colours. */
export function readTheme(root) {
  const host = getComputedStyle(root);
  const [queries, keys] = host.getPropertyValue("--st-chart-categorical-colors").split(",");
  root.style.setProperty("--queries-base", queries);
  root.style.setProperty("--keys-base", keys);
  root.dataset.theme = luminance(rgbOf(host.getPropertyValue("--st-background-color"))) > 0.4 ? "light" : "dark";
  const style = getComputedStyle(root);
  const probe = document.createElement("span");
  root.append(probe);
  const colour = (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const theme = {
    font: style.fontFamily,
    text: style.color,
    quiet: colour("--quiet"),
    queries: colour("--queries"),
    keys: colour("--keys"),
    mark: colour("--keys-base"),
    paper: colour("--card"),
    heads: HEAD_COLOURS[root.dataset.theme],
  };
  probe.remove();
  return theme;
}

export const paintOf = (/** @type {View} */ view, cells) => (cells.signed ? view.paints.signed : view.paints.weights);

/**
 * A map as an image of that many pixels. Larger than the map it repeats cells; smaller it keeps
 * the strongest weight of the cells under a pixel, as the thumbnails do; `zero` is the value of weight 0, and `skipped` the
 * colour of -0.
 */
export function rasterise({ rows, columns, values }, palette, steps, width, height, zero = 0, skipped = null) {
  const image = new ImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const cuts = (cells, size) => Array.from({ length: size + 1 }, (_, i) => Math.floor((i * cells) / size));
  const down = cuts(rows, height);
  const across = cuts(columns, width);
  for (let y = 0, p = 0; y < height; y += 1) {
    const bottom = Math.max(down[y] + 1, down[y + 1]);
    for (let x = 0; x < width; x += 1, p += 1) {
      const right = Math.max(across[x] + 1, across[x + 1]);
      let strongest = values[down[y] * columns + across[x]];
      for (let row = down[y]; row < bottom; row += 1) {
        for (let column = across[x]; column < right; column += 1) {
          const value = values[row * columns + column];
          if (Math.abs(value - zero) > Math.abs(strongest - zero)) strongest = value;
        }
      }
      pixels[p] = skipped !== null && Object.is(strongest, -0) ? skipped : palette[steps(strongest)];
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
