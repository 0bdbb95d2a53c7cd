// Bipartite drawing: queries left, keys right, a line for each weight above the threshold.

import { labelsToWrite } from "./map_draw.js";
import { fitLabels, TALLEST_MAP } from "./map_layout.js";

export const MOST_LINKS = 20000;
const BENT_LINKS = 4000; // more than this are drawn straight, which is faster and looks the same
const LINE = { tallest: 26, least: 9 };

export function layOutLinks(cells, width, family) {
  const size = 12.5;
  const longest = Math.min(170, width * 0.32);
  const queries = fitLabels(cells.queries, family, size, longest);
  const keys = fitLabels(cells.keys, family, size, longest);
  const most = Math.max(cells.rows, cells.columns);
  const pitch = Math.min(LINE.tallest, TALLEST_MAP / most);
  const height = Math.ceil(pitch * most) + 8;
  const left = Math.ceil(queries.widest) + 12;
  const right = width - Math.ceil(keys.widest) - 12;
  // The shorter side stands in the middle of the taller.
  const start = (count) => 4 + (pitch * (most - count)) / 2;
  return {
    kind: "links", width, height, left, right, pitch, queries, keys,
    size: Math.max(LINE.least, Math.min(size, pitch * 0.9)),
    top: { query: start(cells.rows), key: start(cells.columns) },
    every: Math.max(1, Math.ceil((LINE.least * 1.1) / pitch)),
  };
}

const heightOf = (layout, axis, bin) => layout.top[axis] + (bin + 0.5) * layout.pitch;

/** The links of some heads' cells that a rule lets through, weakest first: {row, column, weight, head}. */
export function findLinks(layers, rule) {
  const links = [];
  const value = Number(rule.slice(1));
  layers.forEach((cells, head) => {
    for (let row = 0; row < cells.rows; row += 1) {
      const from = row * cells.columns;
      let least = value;
      if (rule[0] === "k") {
        const sizes = Array.from(cells.values.subarray(from, from + cells.columns), Math.abs).sort((a, b) => b - a);
        least = sizes[Math.min(value, sizes.length) - 1] ?? Infinity;
      }
      for (let column = 0; column < cells.columns; column += 1) {
        const weight = cells.values[from + column];
        if (weight !== 0 && Math.abs(weight) >= least) links.push({ row, column, weight, head });
      }
    }
  });
  links.sort((a, b) => Math.abs(a.weight) - Math.abs(b.weight));
  return links.length > MOST_LINKS ? links.slice(-MOST_LINKS) : links;
}

/** Draw links; `shown(link)` says which. */
export function drawLinks(context, view, plot, shown = () => true) {
  const { layout, links, cells } = plot;
  const [from, to] = [layout.left, layout.right];
  const bend = (to - from) * 0.4;
  const bent = links.length <= BENT_LINKS;
  context.lineCap = "round";
  for (const link of links) {
    if (!shown(link)) continue;
    const strength = Math.min(1, Math.abs(link.weight));
    context.strokeStyle = linkColour(view, cells, link);
    context.globalAlpha = 0.12 + 0.88 * strength;
    context.lineWidth = 0.6 + 3.4 * strength;
    const [y, toY] = [heightOf(layout, "query", link.row), heightOf(layout, "key", link.column)];
    context.beginPath();
    context.moveTo(from, y);
    if (bent) context.bezierCurveTo(from + bend, y, to - bend, toY, to, toY);
    else context.lineTo(to, toY);
    context.stroke();
  }
  context.globalAlpha = 1;
}

function linkColour(view, cells, { weight, head }) {
  if (cells.signed) return weight > 0 ? (view.dark ? "#ff8f7a" : "#b2182b") : view.dark ? "#7db8ea" : "#2166ac";
  return view.theme.heads[head % view.theme.heads.length];
}

/** The tokens of both sides; those pointed at or pinned are bold. */
export function drawLinkLabels(context, plot, theme, rows, columns) {
  const { layout } = plot;
  const side = (axis, labels, marks, x, align, colour) => {
    const marked = marks.map((mark) => mark.at);
    context.textAlign = align;
    context.textBaseline = "middle";
    context.direction = "ltr";
    for (const bin of labelsToWrite(labels.count, layout.every, marked)) {
      context.font = `${marked.includes(bin) ? "bold " : ""}${layout.size}px ${theme.font}`;
      context.fillStyle = colour;
      context.fillText(labels.label(bin).text, x, heightOf(layout, axis, bin));
    }
  };
  side("query", layout.queries, rows, layout.left - 7, "right", theme.queries);
  side("key", layout.keys, columns, layout.right + 7, "left", theme.keys);
}

/** The token on whose side and height a point lies, in bins, or null. */
export function hitLinks(layout, cells, x, y) {
  const axis = x < (layout.left + layout.right) / 2 ? "query" : "key";
  const bin = Math.floor((y - layout.top[axis]) / layout.pitch);
  if (bin < 0 || bin >= (axis === "query" ? cells.rows : cells.columns)) return null;
  return axis === "query" ? { row: bin, column: null, by: "query" } : { row: null, column: bin, by: "key" };
}
