// The page's own fonts and colours as a template of plotly: what a figure says itself comes first. Titles that are longer
// than what they name break, and what cannot break shrinks; plotly lets them run out of the chart.

import { luminance, piecesOf, rgbOf, textWidth, wrap } from "../shared/canvas.js";

const SMALL = 12; // pixels: ticks, legend, what the pointer reads
const MEDIUM = 14; // titles of axes
const PAD = 8; // pixels between a plot and the labels of its axes
const STANDOFF = { x: 20, y: 24 }; // between these and the titles

// What figures say (ui/widgets/figure_style.py): the accent, then the categories in the order of the theme's.
const ACCENT = "#0b8a7f";
const CATEGORIES = ["#0072b2", "#d55e00", "#009e73", "#a34b82", "#e69f00", "#56b4e9", "#7a6f00", "#7f7f7f"];

/** Of what leaves the page: dark on white, whatever the page wears. */
export const PRINTED = { text: "#1d2125", paper: "#ffffff", line: "#dcd8cf", accent: ACCENT, categories: CATEGORIES };

/** The theme's values where this element stands. */
export function themeOf(element) {
  const style = getComputedStyle(element);
  const read = (name) => style.getPropertyValue(`--st-${name}`).trim();
  const colours = (name) => read(name).split(/,(?![^(]*\))/).map((colour) => colour.trim()).filter(Boolean);
  return {
    text: read("text-color"),
    paper: read("background-color"),
    line: read("border-color"),
    accent: read("primary-color"),
    font: read("font"),
    titleFont: read("heading-font"),
    categories: colours("chart-categorical-colors"),
    sequential: colours("chart-sequential-colors"),
    diverging: colours("chart-diverging-colors"),
  };
}

export function templateOf(theme) {
  const { text, paper, line, font, titleFont } = theme;
  const quiet = faded(text, 0.75);
  // 20,000 in every language, for k and M are read in few.
  const numbers = { exponentformat: "none", separatethousands: true };
  const ticks = { tickfont: { color: quiet, size: SMALL }, tickcolor: line, ...numbers };
  const rules = { gridcolor: faded(line, 0.7), zerolinecolor: line, minor: { gridcolor: faded(line, 0.4) } };
  const title = { font: { color: quiet, size: MEDIUM } };
  const bar = { ...ticks, outlinewidth: 0, title };
  return {
    layout: {
      font: { color: quiet, family: font, size: SMALL },
      title: { font: { color: text, family: titleFont, size: 16 }, x: 0, xanchor: "left", pad: { l: 4 } },
      legend: { font: { color: text, size: SMALL }, title: { font: { color: quiet, size: SMALL }, side: "top" } },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      // What is turned ends under its tick: the last one would run out of the chart, where plotly leaves it out.
      xaxis: { ...ticks, ...rules, ticks: "", autotickangles: [0, -35, -90], showgrid: false, zeroline: false, automargin: true, title: { ...title, standoff: STANDOFF.x } },
      yaxis: { ...ticks, ...rules, ticks: "", automargin: true, title: { ...title, standoff: STANDOFF.y } },
      margin: { pad: PAD, l: 0, r: 0 },
      hoverlabel: { bgcolor: paper, bordercolor: line, font: { color: text, family: font, size: SMALL } },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: faded(text, 0.5), activecolor: text },
      colorway: theme.categories,
      colorscale: { sequential: spread(theme.sequential), diverging: spread(theme.diverging) },
      coloraxis: { colorbar: bar },
    },
    data: { scatter: [{ marker: { line: { width: 0 } } }], heatmap: [{ colorbar: bar }] },
  };
}

/** The same on a dark page: a figure's own blue, orange and green as the theme has them there, which can be read. */
export function inTheme(figure, theme) {
  if (luminance(rgbOf(theme.paper)) > 0.4) return figure;
  const colours = new Map(CATEGORIES.map((colour, i) => [colour, theme.categories[i] ?? colour]));
  colours.set(ACCENT, theme.accent);
  const own = new RegExp([...colours.keys()].join("|"), "gi");
  const turned = (value) => {
    if (typeof value === "string") return value.replace(own, (colour) => colours.get(colour.toLowerCase()));
    if (Array.isArray(value)) return value.map(turned);
    if (!value || typeof value !== "object" || ArrayBuffer.isView(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, turned(each)]));
  };
  return turned(figure);
}

function faded(colour, opacity) {
  return `rgba(${[...rgbOf(colour)].join(",")},${opacity})`;
}

const spread = (colours) => colours.map((colour, i) => [i / (colours.length - 1), colour]);

const AROUND = { x: 60, y: 90 }; // pixels beside the plots, and over and under them
const SCALE = 80; // and beside them for a colour scale with its title
const NAME = 16; // plotly's type of the names of plots that stand side by side
const LEAST = 8;
const LINE = 1.3;
const NARROW = 480; // pixels

/** Titles of the axes of a layout, and names of its plots, within the width and height that it says, in pixels. */
export function fitTitles(data, layout, family) {
  const axes = Object.entries(layout).filter(([name]) => /^[xy]axis\d*$/.test(name));
  const titled = axes.filter(([, axis]) => axis.title?.text);
  for (const [name, axis] of titled) {
    const { from, to } = endsOf(axis);
    const rivals = titled.filter(([other, { domain }]) => other[0] === name[0] && domain && (domain[1] <= from || domain[0] >= to));
    // Alone it may be as long as stays within the chart on both sides of its middle.
    const share = rivals.length ? to - from : Math.min(from + to, 2 - from - to);
    const fit = fitted(axis.title.text, axis.title.font?.size ?? MEDIUM, share * roomOf(layout, name[0]), family);
    axis.title = { ...axis.title, text: fit.text, font: { ...axis.title.font, size: fit.size } };
  }
  fitNames(layout, axes, roomOf(layout, "x") - (scalesOf(data, layout).length ? SCALE : 0), family);
}

const CAPITALS = 0.7; // of a title's type, as plotly reckons its height
const LABEL = 16; // pixels of a line of tick labels
const SLANT = Math.sin((35 * Math.PI) / 180); // of labels that would overlap
const TICK = 5; // its length, where it is drawn
const LEGEND = 29; // of a legend in one line

/**
 * Margins with room for the labels and titles of axes and for a legend. Plotly makes this room by itself, but draws the
 * whole chart again, up to four times, for each side that grows.
 */
export function reserveMargins(data, layout, family) {
  const margin = { l: 0, r: 0, t: 100, b: 80, ...layout.margin };
  const edge = Math.min(12, margin.r, margin.t); // plotly's distance to it, where the two other margins grow
  const grow = (side, room) => (margin[side] = Math.max(margin[side], Math.ceil(edge + room)));
  if (data.filter(({ showlegend }) => showlegend !== false).length > 1 && layout.legend?.y === 1) grow("t", LEGEND);
  for (const [name, axis] of Object.entries(layout)) {
    if (!isAtEdge(name, axis, layout)) continue;
    if (name[0] === "x") grow("b", besideLabels(axis, STANDOFF.x, labelHeight(axis, layout, family)));
    else grow("l", besideLabels(axis, STANDOFF.y, labelWidth(data, layout, name, family)));
  }
  layout.margin = margin;
}

/** Whether this is an axis whose labels stand below or to the left of all plots. */
function isAtEdge(name, axis, layout) {
  const [, letter] = name.match(/^([xy])axis\d*$/) ?? [];
  if (!letter || axis.visible === false || axis.side === "right" || axis.side === "top") return false;
  const crossing = layout[(axis.anchor ?? (letter === "x" ? "y" : "x")).replace(/^[xy]/, "$&axis")];
  return endsOf(crossing ?? {}).from === 0;
}

/** Room for the labels of an axis, of this size, and its title. */
function besideLabels({ title, showticklabels, ticks }, standoff, size) {
  const lines = (title?.text ?? "").split("<br>").length - 1;
  const titled = (title?.font?.size ?? MEDIUM) * (CAPITALS + LINE * lines) + standoff;
  return titled + (showticklabels === false ? 0 : PAD + 1 + size) + (ticks === "outside" ? TICK : 0);
}

const textWidthOf = (label, family, weight = "") => Math.max(...String(label).split("<br>").map((line) => textWidth(plain(line), `${weight} ${SMALL}px ${family}`)));

/** A label as it is seen: plotly reads tags in it, so that a token's own brackets are escaped. */
const plain = (line) => line.replace(/<[^>]*>/g, "").replace(/&(?:lt|gt|amp);/g, "<");

/** Height of the labels of a horizontal axis, which slant where they would overlap: of one line where they are not known. */
function labelHeight(axis, layout, family) {
  const labels = (axis.ticktext ?? []).map(String);
  const { from, to } = endsOf(axis);
  const between = ((to - from) * roomOf(layout, "x")) / labels.length;
  const widths = labels.map((label) => textWidthOf(label, family));
  const slanted = axis.tickangle ?? widths.some((width, i) => (width + (widths[i - 1] ?? 0)) / 2 > between);
  if (slanted) return SLANT * Math.max(...widths) + LABEL;
  return LABEL * Math.max(1, ...labels.map((label) => label.split("<br>").length));
}

/** Width of the widest label of a vertical axis, which plotly chooses: 0 where that is not known. */
function labelWidth(data, layout, name, family) {
  const axis = layout[name];
  const weight = axis.ticktext?.some((label) => /<b>/.test(label)) ? "bold" : ""; // whichever of them it may be
  const width = (labels) => Math.max(0, ...labels.map((label) => textWidthOf(label, family, weight)));
  if (axis.ticktext ?? axis.tickvals) return width(axis.ticktext ?? axis.tickvals);
  const values = data.filter(({ yaxis = "y" }) => yaxis.replace("y", "yaxis") === name).flatMap(({ y }) => [...(y ?? [])]);
  if (values.some((value) => typeof value === "string")) return width(values);
  const [low, high] = axis.range ?? values.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, -Infinity]);
  if (axis.type === "log" || !(low < high)) return 0;
  const from = axis.rangemode === "tozero" ? Math.min(0, low) : low;
  const { from: bottom, to: top } = endsOf(axis);
  const rough = (high - from) / (1 + Math.min(9, Math.max(4, ((top - bottom) * roomOf(layout, "y")) / 40)));
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = axis.dtick ?? power * [2, 5, 10].find((each) => each >= rough / power);
  const digits = Math.max(0, -Math.floor(Math.log10(step)));
  return width([from, high].map((end) => (Math.trunc(end / step) * step).toFixed(digits)));
}

const BUTTONS = { width: 70, height: 25 }; // pixels of those at the top right, where they are always visible
const ENTRY = 45; // of a legend, beside its text

/** Whether something is drawn where a touch screen has the buttons of a chart of this width. */
export function isCornerUsed(data, { margin, legend, annotations = [] }, width, family) {
  const [start, free] = [AROUND.x, width - BUTTONS.width];
  const entries = data.filter(({ showlegend }) => showlegend !== false);
  const long = entries.reduce((sum, { name }) => sum + ENTRY + textWidthOf(name ?? "", family), start);
  if ((margin?.t ?? 100) < BUTTONS.height || (entries.length > 1 && legend?.y === 1 && long > free)) return true;
  return annotations.some(({ xref, yref, x, y, text, font }) => {
    const half = textWidth(plain(text), `${font?.size ?? NAME}px ${family}`) / 2;
    return xref === "paper" && yref === "paper" && y > 0.95 && start + x * (width - start) + half > free;
  });
}

/** On a phone the title of a colour scale stands along it: over it, it would be wider than the scale, and the picture less. */
export function turnScales(data, layout) {
  if (layout.width >= NARROW) return;
  for (const colorbar of scalesOf(data, layout)) {
    if (colorbar.title) colorbar.title = { ...colorbar.title, side: "right" };
  }
}

const scalesOf = (data, layout) =>
  [...data, layout.coloraxis ?? {}].map(({ colorbar }) => colorbar).filter((bar) => bar && bar.orientation !== "h");

const endsOf = ({ domain: [from, to] = [0, 1] }) => ({ from, to });

const roomOf = ({ width, height }, letter) => Math.max(LEAST, (letter === "x" ? width : height) - AROUND[letter]);

/** Names over plots side by side, all in one size. They grow upwards, where the legend is: it goes up, and the margin with it. */
function fitNames(layout, axes, room, family) {
  const across = axes.filter(([name]) => name[0] === "x").map(([, axis]) => endsOf(axis));
  const names = (layout.annotations ?? [])
    .filter(({ xref, yref, showarrow, yanchor }) => xref === "paper" && yref === "paper" && showarrow === false && yanchor === "bottom")
    .map((note) => ({ note, under: across.find(({ from, to }) => from <= note.x && note.x <= to) }))
    .filter(({ under }) => under);
  const fit = ({ note, under: { from, to } }, size) => fitted(note.text, size, (to - from) * Math.max(LEAST, room), family);
  const size = Math.min(...names.map((each) => fit(each, each.note.font?.size ?? NAME).size));
  let most = 1;
  for (const each of names) {
    const { note } = each;
    const { text, lines } = fit(each, size);
    Object.assign(note, { text, font: { ...note.font, size } });
    if (note.y > 0.95) most = Math.max(most, lines);
  }
  const more = (most - 1) * size * LINE;
  if (!more) return;
  layout.margin = { ...layout.margin, t: (layout.margin?.t ?? 0) + more };
  layout.legend = { ...layout.legend, y: (layout.legend?.y ?? 1) + more / roomOf(layout, "y") };
}

/** A text, its lines and the size of its type, in pixels, at which it is no longer than there is room. */
function fitted(text, size, room, family) {
  const long = (line) => textWidth(line.replace(/<[^>]*>/g, ""), `${size}px ${family}`);
  const given = text.split("<br>");
  if (Math.max(...given.map(long)) <= room) return { text, size, lines: 1 }; // its figure has room for lines of its own
  const widest = Math.max(...piecesOf(text).map(long)); // a word is never broken
  const lines = given.length > 1 ? given : wrap(text, Math.max(room, widest + 1), `${size}px ${family}`);
  const shrunk = Math.floor((size * room) / Math.max(...lines.map(long)));
  return { text: lines.join("<br>"), size: Math.max(LEAST, Math.min(size, shrunk)), lines: given.length > 1 ? 1 : lines.length };
}
