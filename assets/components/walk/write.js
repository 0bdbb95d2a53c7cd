// Texts on the canvas.

/** Write a text where all of it is in view; a part of a word is worse than none. */
export function write({ context }, view, text, x, y) {
  const { actualBoundingBoxLeft: left, actualBoundingBoxRight: right, actualBoundingBoxAscent: up, actualBoundingBoxDescent: down } =
    context.measureText(text);
  if (x - left < 0 || x + right > view.width || y - up < 0 || y + down > view.height) return;
  context.fillText(text, x, y);
}
