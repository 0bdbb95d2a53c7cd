// The page's own fonts and colours as a template of plotly: what a figure says itself comes first.

import { luminance, rgbOf } from "../shared/canvas.js";

const SMALL = 12; // pixels: ticks, legend, what the pointer reads
export const MEDIUM = 14; // titles of axes

// What figures say (ui/widgets/figure_style.py): the accent, then the categories in the order of the theme's.
const ACCENT = "#0b8a7f";
const CATEGORIES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a6f00", "#7f7f7f"];

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
      xaxis: { ...ticks, ...rules, showgrid: false, zeroline: false, automargin: true, title: { ...title, standoff: 20 } },
      yaxis: { ...ticks, ...rules, automargin: true, title: { ...title, standoff: 24 } },
      margin: { pad: 8, l: 0, r: 0 },
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

/** Colours evenly from 0 to 1. */
const spread = (colours) => colours.map((colour, i) => [i / (colours.length - 1), colour]);
