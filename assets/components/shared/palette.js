// Colour scales as bytes.

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
