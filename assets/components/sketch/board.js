// The board as SVG: axes, what is there already, what the reader drew and, once revealed, what comes out.

import { percent, shares, ticks } from "./layout.js";

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
  if (!data.over) drawAxes(pen, data);
  const weights = !data.over ? drawWeights : data.over.cells ? drawCells : drawBars;
  ({ curve: drawCurve, weights, star: drawStar })[data.kind](pen, data);
}

function drawAxes({ put, layout, x, y }, { kind, x: ends, y: span, titles }) {
  const { left, right, top, bottom, format } = layout;
  put("path", { class: "axis", fill: "none", d: `M${left} ${top}V${bottom}H${right}` });
  if (kind === "weights") return;
  const share = (number, [low, high]) => (number - low) / (high - low);
  for (const number of ticks(...ends)) {
    put("text", { x: x(share(number, ends)), y: bottom + 15, "text-anchor": "middle" }, format(number));
  }
  for (const number of ticks(...span)) {
    put("text", { x: left - 6, y: y(TOP * share(number, span)) + 4, "text-anchor": "end" }, format(number));
  }
  put("text", { x: (left + right) / 2, y: bottom + 32, "text-anchor": "middle" }, titles[0]);
  put("text", { transform: `translate(11 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, titles[1]);
}

function drawPoints({ put, x, y }, { points, names, colours, kind }) {
  points.forEach(([across, up], i) => {
    put("circle", { cx: x(across), cy: y(TOP * up), r: kind === "star" ? 6 : 3.5, fill: colours.points, opacity: 0.8 });
    if (names[i]) put("text", { x: x(across) + 9, y: y(TOP * up) - 7 }, names[i]);
  });
}

function drawCurve(pen, data) {
  const { put, layout, x, y, levels, touched, at, focused } = pen;
  const { colours, truth, words } = data;
  drawPoints(pen, data);
  const line = (all, stroke, more = {}) => {
    const d = all.map((level, i) => `${i ? "L" : "M"}${x(layout.across[i])} ${y(level)}`).join("");
    put("path", { d, fill: "none", stroke, "stroke-width": 3, "stroke-linejoin": "round", ...more });
  };
  line(levels, colours.guess, touched ? {} : { "stroke-dasharray": "4 6", opacity: 0.6 });
  if (truth) {
    if (data.over) { // a figure shows its own answer and has its own legend
      const end = { x: layout.right, y: y(levels.at(-1)) - 8, "text-anchor": "end", style: `fill:${colours.guess};opacity:1` };
      put("text", end, words.yours);
      return;
    }
    line(truth, colours.truth);
    drawLegend(pen, [[words.yours, colours.guess], [words.truth, colours.truth]]);
    return;
  }
  levels.forEach((level, i) => {
    const here = focused && i === at;
    put("circle", { class: "handle", cx: x(layout.across[i]), cy: y(level), r: here ? 8 : 5, fill: colours.guess });
  });
}

function drawLegend({ put, layout }, entries) {
  let left = layout.left + 10;
  for (const [name, fill] of entries) {
    put("rect", { x: left, y: layout.top, width: 14, height: 4, rx: 2, fill });
    put("text", { x: left + 19, y: layout.top + 6 }, name);
    left += 34 + 7 * name.length;
  }
}

/** Bars to pull up and, under them, the same as shaded cells; the computed row under yours. */
function drawWeights({ put, layout, x, y, levels, at, focused }, { names, colours, truth, words }) {
  const wide = (layout.right - layout.left) / names.length;
  levels.forEach((level, i) => {
    const middle = x(layout.across[i]);
    const bar = { x: middle - 0.36 * wide, width: 0.72 * wide, rx: 3, fill: colours.guess };
    put("rect", { ...bar, y: layout.top, height: layout.bottom - layout.top, opacity: focused && i === at ? 0.25 : 0.1 });
    put("rect", { ...bar, y: y(level), height: layout.bottom - y(level) });
  });
  const rows = [[words.yours, shares(levels)], ...(truth ? [[words.truth, truth]] : [])];
  rows.forEach(([title, row], r) => {
    const top = layout.bottom + 6 + r * layout.strip;
    put("text", { x: layout.left - 6, y: top + 16, "text-anchor": "end" }, title);
    row.forEach((share, i) => {
      const left = layout.left + i * wide;
      put("rect", { x: left + 1, y: top, width: wide - 2, height: layout.strip - 3, rx: 2, fill: shade(share) });
      const label = { x: left + wide / 2, y: top + 16, "text-anchor": "middle", style: `fill:${share > 0.6 ? "#000" : "#fff"};opacity:1` };
      if (wide > 34) put("text", label, percent(share));
    });
  });
  const foot = layout.bottom + 6 + rows.length * layout.strip + 14;
  const letters = Math.max(2, Math.floor(wide / 7));
  names.forEach((name, i) => {
    const text = name.length > letters ? `${name.slice(0, letters - 1)}…` : name;
    put("text", { x: x(layout.across[i]), y: foot, "text-anchor": "middle" }, text);
  });
}

/** Weights over a figure's own bars, which lie across. */
function drawBars({ put, layout, levels, at, focused }, { colours, truth }) {
  const high = (layout.bottom - layout.top) / levels.length;
  const long = layout.right - layout.left;
  const parts = shares(levels);
  levels.forEach((level, i) => {
    const bar = { x: layout.left, y: layout.top + (i + 0.2) * high, height: 0.6 * high, rx: 3, fill: colours.guess };
    const share = truth ? parts[i] : level / TOP; // only shares count, and once revealed they are what is shown
    if (!truth) put("rect", { ...bar, width: long, opacity: focused && i === at ? 0.25 : 0.1 });
    put("rect", { ...bar, width: share * long, opacity: truth ? 0.35 : 0.8, stroke: colours.guess, "stroke-width": 2 });
    const label = { x: layout.left + share * long - 6, y: bar.y + 0.3 * high + 4, "text-anchor": "end" };
    if (!truth && share * long > 40) put("text", { ...label, style: "fill:#fff;opacity:1" }, percent(parts[i]));
  });
}

/** Weights in a figure's own row of cells: shaded from below, and once revealed a strip under the computed ones. */
function drawCells({ put, layout, levels, at, focused }, { colours, truth }) {
  const wide = (layout.right - layout.left) / levels.length;
  const high = layout.bottom - layout.top;
  const parts = shares(levels);
  levels.forEach((level, i) => {
    const full = truth ? STRIP : (level / TOP) * high;
    const cell = { x: layout.left + i * wide + 1, width: wide - 2 };
    if (!truth) put("rect", { ...cell, y: layout.top, height: high, fill: colours.guess, opacity: focused && i === at ? 0.25 : 0.1 });
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
  const { colours, truth, words } = data;
  if (!data.over) drawPoints(pen, data); // a figure has its own, and shows its own answer
  const star = ([across, up], fill, more = {}) => {
    const [cx, cy] = [x(across / TOP), y(up)];
    const corner = (i) => {
      const [r, turn] = [i % 2 ? 5 : 12, (i * Math.PI) / 5 - Math.PI / 2];
      return `${cx + r * Math.cos(turn)},${cy + r * Math.sin(turn)}`;
    };
    put("polygon", { class: "handle", points: Array.from({ length: 10 }, (_, i) => corner(i)).join(" "), fill, ...more });
  };
  if (truth && !data.over) star(truth, colours.truth);
  star(levels, colours.guess, { opacity: touched ? 1 : 0.5 });
  if (truth && data.over) {
    const below = { x: x(levels[0] / TOP), y: y(levels[1]) + 24, "text-anchor": "middle" };
    put("text", { ...below, style: `fill:${colours.guess};opacity:1` }, words.yours);
  } else if (truth) drawLegend(pen, [[words.yours, colours.guess], [words.truth, colours.truth]]);
}
