// Over a picture whose patches are keys alone: the queries to choose from, and where deformable attention reads.

import { textWidth } from "../shared/canvas.js";
import { partOf } from "./store.js";

const NUM_QUERIES = 12; // that are offered at once
const CHIP = { height: 24, gap: 6 };
const FIELDS = 4; // of a point: across, down, weight and feature map
const RADIUS = 3.5; // of a point of the first feature map; coarser ones have larger points
const MAX_DISTANCE = 12; // pixels from a point that still point at it

/** Points of heads and queries, each from 0 to 1 across and down the picture; null while they are not here. */
export function pointsOver(/** @type {View} */ view, { input, group, heads }, queries) {
  const found = [];
  for (const query of queries) {
    for (const [layer, head] of heads) {
      const part = partOf(view, `points ${input} ${group} ${layer} q${query}`);
      if (!part) return null;
      const size = part.shape[1] * FIELDS;
      found.push(part.values.subarray(head * size, (head + 1) * size));
    }
  }
  const points = new Float32Array(found.reduce((sum, each) => sum + each.length, 0));
  found.reduce((start, each) => (points.set(each, start), start + each.length), 0);
  return points;
}

/** Each point as {x, y, weight, level}, the weakest first. */
const listed = (points, box) =>
  Array.from({ length: points.length / FIELDS }, (_, i) => {
    const [u, v, weight, level] = points.subarray(i * FIELDS, (i + 1) * FIELDS);
    return { x: box.x + u * box.width, y: box.y + v * box.height, u, v, weight, level };
  }).sort((one, other) => one.weight - other.weight);

export const strongestPoint = (points) => points.reduce((most, value, i) => (i % FIELDS === 2 ? Math.max(most, value) : most), 0);

/** Points in the colour of their weights; those outside of the picture read zeros, and are not drawn. */
export function drawPoints(context, points, paint, peak, box) {
  const scale = Math.min(1, Math.max(0.4, box.width / 260));
  for (const { x, y, u, v, weight, level } of listed(points, box)) {
    if (u < 0 || u > 1 || v < 0 || v > 1) continue;
    context.beginPath();
    context.arc(x, y, scale * RADIUS * (1 + 0.45 * level), 0, 2 * Math.PI);
    context.fillStyle = paint.css(paint.step(weight / peak));
    context.fill();
    context.strokeStyle = "#ffffff";
    context.lineWidth = scale * 1.4;
    context.stroke();
  }
}

/** The place of a feature map that the nearest point lies in, as a key; null where none is near. */
export function hitPoint({ left, top, right, bottom, levels }, cells, x, y) {
  const box = { x: left, y: top, width: right - left, height: bottom - top };
  const inside = listed(cells.points, box).filter(({ u, v }) => u >= 0 && u < 1 && v >= 0 && v < 1);
  const distance = (point) => Math.hypot(point.x - x, point.y - y);
  const nearest = inside.reduce((best, point) => (!best || distance(point) <= distance(best) ? point : best), null);
  if (!nearest || distance(nearest) > MAX_DISTANCE) return null;
  const before = levels.slice(0, nearest.level).reduce((sum, [rows, columns]) => sum + rows * columns, 0);
  const [rows, columns] = levels[nearest.level];
  return { row: null, column: before + Math.floor(nearest.v * rows) * columns + Math.floor(nearest.u * columns), by: "key" };
}

/** Chips of some queries around the one that is read, from `top` on. */
export function layOutQueries(cells, width, family, top) {
  const { queries, units } = cells;
  const count = queries.axis.count;
  const first = Math.max(0, Math.min(units[0] - NUM_QUERIES / 2, count - NUM_QUERIES));
  const chips = [];
  let [x, y] = [1, top];
  for (let query = first; query < Math.min(count, first + NUM_QUERIES); query += 1) {
    const text = queries.axis.name(query);
    const length = textWidth(text, `bold 12.5px ${family}`) + 12;
    if (x > 1 && x + length > width) [x, y] = [1, y + CHIP.height + 4];
    chips.push({ x, y, width: length, height: CHIP.height, text, query });
    x += length + CHIP.gap;
  }
  return chips;
}

/** The query whose chip is under a point, or null. */
export function pickQuery({ querying }, x, y) {
  const chip = querying.find((box) => x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height);
  return chip ? chip.query : null;
}
