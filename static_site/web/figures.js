// Figures of the pages: curves and circles as SVG, maps by the app's heatmap component.

import showHeatmap from "./components/heatmap/main.js";
import { element } from "./components/shared/elements.js";
import { frame, makeSections } from "./files.js";

/** Okabe-Ito, in the order of ui/widgets/figure_style.py. */
export const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
export const ACCENT = "#0b8a7f";
const SIGNED = ["#053061", "#2166ac", "#4393c3", "#92c5de", "#d1e5f0", "#f7f7f7", "#fddbc7", "#f4a582", "#d6604d", "#b2182b", "#67001f"];

const SVG = "http://www.w3.org/2000/svg";

/** An SVG element with attributes and children, which are elements or text. */
export function draw(name, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/** Draw anew at each width of a host that is not the last one; `paint` gives the SVG for so many pixels. */
export function drawAtWidth(host, paint) {
  host.paint = paint;
  let width = 0;
  const render = () => {
    width = host.clientWidth;
    if (width) host.replaceChildren(...host.paint(width));
  };
  render();
  if (host.observer) return;
  host.observer = new ResizeObserver(() => width !== host.clientWidth && render());
  host.observer.observe(host);
}

/** Round numbers between two ends, about so many. */
function ticks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, i) => (first + i) * step);
}

/**
 * Curves over one axis, with a legend below.
 *
 * @param chart {alt, x: {title, low, high}, y: {title, low, high}, series: [{name, colour, dash, points: [[x, y]]}]}
 */
export function drawCurves(host, chart, tick) {
  drawAtWidth(host, (width) => {
    const [left, right, top, bottom, height] = [52, 12, 10, 44, 300];
    const { x, y, series } = chart;
    const across = (value) => left + ((value - x.low) / (x.high - x.low || 1)) * (width - left - right);
    const down = (value) => height - bottom - ((value - y.low) / (y.high - y.low || 1)) * (height - top - bottom);
    const label = (text, attributes) => draw("text", attributes, text);
    const svg = draw("svg", { role: "img", "aria-label": chart.alt, width, height, viewBox: `0 0 ${width} ${height}`, class: "curves" });
    for (const value of ticks(y.low, y.high, 4)) {
      svg.append(draw("line", { class: "grid", x1: left, x2: width - right, y1: down(value), y2: down(value) }));
      svg.append(label(tick(value), { x: left - 6, y: down(value) + 4, "text-anchor": "end" }));
    }
    for (const value of ticks(x.low, x.high, width < 500 ? 4 : 8)) svg.append(label(tick(value), { x: across(value), y: height - bottom + 17, "text-anchor": "middle" }));
    svg.append(label(x.title, { x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle" }));
    if (y.title) svg.append(label(y.title, { "text-anchor": "middle", transform: `translate(13 ${(top + height - bottom) / 2}) rotate(-90)` }));
    for (const { colour, dash = "", points } of series) {
      const path = points.map(([px, py]) => `${across(px).toFixed(1)},${down(py).toFixed(1)}`).join(" ");
      svg.append(draw("polyline", { points: path, stroke: colour, "stroke-dasharray": dash, "stroke-width": 2, fill: "none" }));
    }
    return [svg, legend(series)];
  });
}

function legend(series) {
  const items = series.map(({ name, colour, dash = "" }) => {
    const line = draw("line", { x1: 0, x2: 26, y1: 5, y2: 5, stroke: colour, "stroke-width": 3, "stroke-dasharray": dash });
    return element("li", "", {}, draw("svg", { width: 26, height: 10, "aria-hidden": true }, line), name);
  });
  return element("ul", "legend", {}, ...items);
}

/**
 * Show a table of sinusoids by the app's heatmap component (ui/widgets/heatmap.py says what its header holds).
 *
 * @param map {rows, columns, values, frequencies, rowTitle, columnTitle, words}
 */
export function drawTable(host, markup, language, map) {
  if (!host.shadowRoot) {
    host.attachShadow({ mode: "open" }).innerHTML = markup;
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawTable(host, markup, language, host.map));
  }
  host.map = map;
  const sections = makeSections();
  const pixels = sections.add(Uint8Array.from(map.values, (value) => Math.round((255 * (value + 1)) / 2)));
  const exact = { kind: "sinusoid", offset: sections.add(map.frequencies) };
  const header = {
    rows: map.rows, columns: map.columns, low: -1, high: 1, pixels, exact, language, colours: SIGNED, words: map.words, parts: {},
    row_title: map.rowTitle, column_title: map.columnTitle, digits: 6, square: false,
  };
  showHeatmap({ data: frame(header, sections), parentElement: host.shadowRoot });
}
