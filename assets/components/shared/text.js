// How long texts are, and where they break.

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

// What stays together: a word or a Chinese sign, with the marks that open and close it, for no line begins with a comma
// or ends with a bracket; and a space.
const PIECES = /\s+|[（「『《]*(?:[\u3000-\u9fff\uff00-\uffef]|[^\s\u3000-\u9fff\uff00-\uffef]+)[，。、；：）」』》？！]*/g;

/** Where it may break. */
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
