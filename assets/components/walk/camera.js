// Which part of the world is on the screen.

const LARGEST = 56; // pixels of a row

/** The camera that shows a rectangle whole, in a view of so many pixels; no `unit` of it is larger than a row may be. */
export function fit({ x, y, width, height, unit = 1 }, wide, high) {
  const scale = Math.min(wide / width, high / height, LARGEST / unit);
  return { x: x + width / 2, y: y + height / 2, scale };
}

/** The camera a share of the way from one to another: evenly in the logarithm of the scale. */
export function between(from, to, share) {
  const scale = from.scale * (to.scale / from.scale) ** share;
  // So that a zoom keeps its target in place: places move as 1 / scale does.
  const shift = Math.abs(to.scale - from.scale) < 1e-6 * to.scale ? share : (1 / from.scale - 1 / scale) / (1 / from.scale - 1 / to.scale);
  return { x: from.x + (to.x - from.x) * shift, y: from.y + (to.y - from.y) * shift, scale };
}

export const ease = (share) => (share < 0.5 ? 4 * share ** 3 : 1 - (2 - 2 * share) ** 3 / 2);

/** From the world to the screen, and back. */
export function projection(camera, wide, high) {
  const { x, y, scale } = camera;
  return {
    scale,
    x: (at) => (at - x) * scale + wide / 2,
    y: (at) => (at - y) * scale + high / 2,
    back: (left, top) => ({ x: (left - wide / 2) / scale + x, y: (top - high / 2) / scale + y }),
  };
}
