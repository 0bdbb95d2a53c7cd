// What the reader drew, as SVG over a figure, which has its own axes, legend and answer.

import { percent, shares } from "./layout.js";

const TOP = 99;
const STRIP = 22; // what is left of a row of shaded cells beside the computed one
// Viridis, in which weights are shown everywhere.
const STOPS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

export function drawBoard(view) {
  const { parts, data, layout } = view;
  const { paper } = parts;
  paper.setAttribute("height", layout.height);
  paper.replaceChildren();
  const put = (tag, attributes, text) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text !== undefined) node.textContent = text;
    paper.append(node);
  };
  const pen = { ...view, put, x: (share) => layout.left + share * (layout.right - layout.left) };
  pen.y = (level) => layout.bottom - (level / TOP) * (layout.bottom - layout.top);
  pen.focused = paper.matches(":focus-visible");
  const weights = data.over.cells ? drawCells : drawBars;
  ({ curve: drawCurve, weights, star: drawStar })[data.kind](pen, data);
}

function drawCurve(pen, data) {
  const { put, layout, x, y, levels, touched, at, focused } = pen;
  const { colour, truth, words } = data;
  const d = levels.map((level, i) => `${i ? "L" : "M"}${x(layout.across[i])} ${y(level)}`).join("");
  const dashed = touched ? {} : { "stroke-dasharray": "4 6", opacity: 0.6 };
  put("path", { d, fill: "none", stroke: colour, "stroke-width": 3, "stroke-linejoin": "round", ...dashed });
  if (truth) {
    const end = { x: layout.right, y: y(levels.at(-1)) - 8, "text-anchor": "end", style: `fill:${colour};opacity:1` };
    put("text", end, words.yours);
    return;
  }
  levels.forEach((level, i) => {
    const here = focused && i === at;
    put("circle", { class: "handle", cx: x(layout.across[i]), cy: y(level), r: here ? 8 : 5, fill: colour });
  });
}

/** Weights over a figure's own bars, which lie across. */
function drawBars({ put, layout, levels, at, focused }, { colour, truth }) {
  const high = (layout.bottom - layout.top) / levels.length;
  const long = layout.right - layout.left;
  const parts = shares(levels);
  levels.forEach((level, i) => {
    const bar = { x: layout.left, y: layout.top + (i + 0.2) * high, height: 0.6 * high, rx: 3, fill: colour };
    const share = truth ? parts[i] : level / TOP; // only shares count, and once revealed they are what is shown
    if (!truth) put("rect", { ...bar, width: long, opacity: focused && i === at ? 0.25 : 0.1 });
    put("rect", { ...bar, width: share * long, opacity: truth ? 0.35 : 0.8, stroke: colour, "stroke-width": 2 });
    const label = { x: layout.left + share * long - 6, y: bar.y + 0.3 * high + 4, "text-anchor": "end" };
    if (!truth && share * long > 40) put("text", { ...label, style: "fill:#fff;opacity:1" }, percent(parts[i]));
  });
}

/** Weights in a figure's own row of cells: shaded from below, and once revealed a strip under the computed ones. */
function drawCells({ put, layout, levels, at, focused }, { colour, truth }) {
  const wide = (layout.right - layout.left) / levels.length;
  const high = layout.bottom - layout.top;
  const parts = shares(levels);
  levels.forEach((level, i) => {
    const full = truth ? STRIP : (level / TOP) * high;
    const cell = { x: layout.left + i * wide + 1, width: wide - 2 };
    if (!truth) put("rect", { ...cell, y: layout.top, height: high, fill: colour, opacity: focused && i === at ? 0.25 : 0.1 });
    put("rect", { ...cell, y: layout.bottom - full, height: full, fill: shade(parts[i]) });
    const label = { x: cell.x + cell.width / 2, y: layout.bottom - 6, "text-anchor": "middle" };
    const ink = full < 18 ? "currentColor" : parts[i] > 0.6 ? "#000" : "#fff";
    put("text", { ...label, style: `fill:${ink};opacity:1` }, percent(parts[i]));
  });
}

function shade(share) {
  const at = Math.min(1, Math.max(0, share)) * (STOPS.length - 1);
  const first = Math.min(Math.floor(at), STOPS.length - 2);
  return `rgb(${STOPS[first].map((c, i) => Math.round(c + (at - first) * (STOPS[first + 1][i] - c)))})`;
}

function drawStar(pen, data) {
  const { put, x, y, levels, touched } = pen;
  const { colour, truth, words } = data;
  const [cx, cy] = [x(levels[0] / TOP), y(levels[1])];
  const corner = (i) => {
    const [r, turn] = [i % 2 ? 5 : 12, (i * Math.PI) / 5 - Math.PI / 2];
    return `${cx + r * Math.cos(turn)},${cy + r * Math.sin(turn)}`;
  };
  const points = Array.from({ length: 10 }, (_, i) => corner(i)).join(" ");
  put("polygon", { class: "handle", points, fill: colour, opacity: touched ? 1 : 0.5 });
  const below = { x: cx, y: cy + 24, "text-anchor": "middle", style: `fill:${colour};opacity:1` };
  if (truth) put("text", below, words.yours);
}
