// The page's own fonts and colours as a template of plotly: what a figure says itself comes first.

import { rgbOf } from "../shared/canvas.js";

const SMALL = 12; // pixels: ticks, legend, what the pointer reads
const MEDIUM = 14; // titles of axes

/** The theme's values where this element stands. */
export function themeOf(element) {
  const style = getComputedStyle(element);
  const read = (name) => style.getPropertyValue(`--st-${name}`).trim();
  const colours = (name) => read(name).split(/,(?![^(]*\))/).map((colour) => colour.trim()).filter(Boolean);
  return {
    text: read("text-color"),
    paper: read("background-color"),
    line: read("border-color"),
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
  const ticks = { tickfont: { color: quiet, size: SMALL }, tickcolor: line };
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

function faded(colour, opacity) {
  return `rgba(${[...rgbOf(colour)].join(",")},${opacity})`;
}

/** Colours evenly from 0 to 1. */
const spread = (colours) => colours.map((colour, i) => [i / (colours.length - 1), colour]);
