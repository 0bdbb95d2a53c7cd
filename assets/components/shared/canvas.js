// Canvases in the screen's own pixels, and colours as bytes.

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
export function luminance([red, green, blue]) {
  const linear = (byte) => (byte <= 10 ? byte / 3295 : ((byte / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}

/** Red, green and blue bytes of any CSS colour. */
export function rgbOf(css) {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  context.fillStyle = css;
  context.fillRect(0, 0, 1, 1);
  return context.getImageData(0, 0, 1, 1).data.subarray(0, 3);
}
