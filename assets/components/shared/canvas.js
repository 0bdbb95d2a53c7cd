// What is drawn on a canvas: the screen's own pixels, colours and colour scales as bytes, how long texts are and where they
// break, and how large all of it is while someone presents (assets/components/present).

/** Size a canvas for the screen's own pixels; draw on it in CSS pixels. */
export function sizeCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

/** Relative luminance, 0 to 1 (WCAG 2.2). */
export function luminance(/** @type {ArrayLike<number>} */ { 0: red, 1: green, 2: blue }) {
  const linear = (byte) => (byte <= 10 ? byte / 3295 : ((byte / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}

export function rgbOf(css) {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  context.fillStyle = css;
  context.fillRect(0, 0, 1, 1);
  return context.getImageData(0, 0, 1, 1).data.subarray(0, 3);
}

/** A packed colour as every reader of CSS and SVG takes it. */
export const hexOf = (packed) => `#${[packed, packed >> 8, packed >> 16].map((byte) => (byte & 255).toString(16).padStart(2, "0")).join("")}`;

/** 256 colours through evenly spaced stops ("#rrggbb"), packed as a canvas keeps them. */
export function makePalette(stops) {
  const points = stops.map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  return Uint32Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * (points.length - 1);
    const first = Math.min(Math.floor(at), points.length - 2);
    const [red, green, blue] = points[first].map((channel, c) =>
      Math.round(channel + (at - first) * (points[first + 1][c] - channel)),
    );
    return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  });
}

const rulers = new Map();

/** Width of a text in pixels, in a font such as "12px sans-serif". */
export function textWidth(text, font) {
  if (!rulers.has(font)) {
    const context = document.createElement("canvas").getContext("2d");
    context.font = font;
    rulers.set(font, context);
  }
  return rulers.get(font).measureText(text).width;
}

const graphemes = (text) => Array.from(new Intl.Segmenter().segment(text), ({ segment }) => segment);

/** The longest beginning of a text, with an ellipsis, that measures at most `width`. */
export function shorten(text, width, measure) {
  if (measure(text) <= width) return text;
  const letters = graphemes(text.slice(0, 400));
  let [low, high] = [0, letters.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (measure(`${letters.slice(0, middle).join("")}…`) <= width) low = middle;
    else high = middle - 1;
  }
  return `${letters.slice(0, low).join("")}…`;
}

// What stays together: a word or a Chinese sign, with the marks that open and close it, for no line begins with a comma
// or ends with a bracket; and a space.
const PIECES = /\s+|[（「『《]*(?:[\u3000-\u9fff\uff00-\uffef]|[^\s\u3000-\u9fff\uff00-\uffef]+)[，。、；：）」』》？！]*/g;

export const piecesOf = (text) => text.match(PIECES) ?? [];

/** A text in lines of at most `width` pixels, broken between words where there are any. */
export function wrap(text, width, font) {
  const lines = [];
  let line = "";
  for (const piece of piecesOf(text).flatMap((word) => (textWidth(word, font) > width ? Array.from(word) : [word]))) {
    if (textWidth(line + piece, font) > width && line.trim()) {
      lines.push(line.trimEnd());
      line = piece.trimStart();
    } else line += piece;
  }
  return line.trim() ? [...lines, line.trimEnd()] : lines;
}

const AROUND = 90; // pixels: the page's own edge, and the line under the figure
const LEAST = 240; // pixels: a window lower than that scrolls
const BESIDE = 16; // pixels between it and a text that is shown with it

/** How high it may be there, in pixels; null where it stands among others in its chapter. */
export function stageHeight(root) {
  const host = root.getRootNode().host ?? root;
  if (!host.closest('[data-presented="figure"]')) return null;
  const main = host.closest('[data-testid="stMain"]'); // lower than the window on a tour
  const texts = document.querySelectorAll(':is([data-presented="caption"], [data-presented="question"])');
  const taken = [...texts].reduce((sum, text) => sum + text.offsetHeight + BESIDE, 0);
  return Math.max((main?.clientHeight ?? window.innerHeight) - AROUND - taken, LEAST);
}

/** How many times larger than usual the page's type is, at least 1: what is drawn on a canvas keeps pace. */
export const typeScale = () => Math.max(1, parseFloat(getComputedStyle(document.documentElement).fontSize) / 16);
