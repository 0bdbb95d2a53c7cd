// A figure as Python describes it (ui/widgets/chart.py), with texts that fit the cells of heatmaps, and saved as SVG.

import { shorten, textWidth } from "../shared/canvas.js";
import { escapeXml, saveFile } from "../shared/elements.js";
import { readFrame } from "../shared/mount.js";
import { PRINTED, templateOf, themeOf } from "./theme.js";

const LEAST = 9; // pixels
const BESIDE = 3; // pixels that stay free in a cell
const FEWEST = "nn…"; // a column too narrow for so much shows no text
const NUMBER = /^[\d\s.,+−×%-]*$/;

/** Make the texts in cells fit, for axes as long as plotly has drawn them; whether anything has changed. */
export function fitCells(data, drawn, family) {
  const maps = data.filter(isLabelled).map((trace) => ({ trace, room: roomIn(trace, drawn) - BESIDE }));
  const size = Math.min(...maps.map(({ trace, room }) => (trace.textfont.size * room) / longest(trace, family)));
  if (maps.every(({ trace }) => trace.textfont.size <= size)) return false;
  const shown = Math.max(LEAST, Math.floor(size));
  const numbers = maps.every(({ trace }) => trace.text.flat().every((text) => NUMBER.test(text)));
  for (const { trace, room } of maps) {
    trace.textfont = { ...trace.textfont, size: shown };
    if (size >= LEAST) continue;
    // Half a number would be another number; the pointer reads the texts whole.
    if (numbers || textWidth(FEWEST, `${shown}px ${family}`) > room) trace.texttemplate = "";
    else {
      trace.hovertext ??= trace.text;
      trace.text = trace.text.map((row) => row.map((text) => linesOf(text).map((line) => cut(line, room, `${shown}px ${family}`)).join("<br>")));
    }
  }
  return true;
}

const isLabelled = ({ type, text, texttemplate, textfont }) =>
  type === "heatmap" && texttemplate === "%{text}" && Array.isArray(text?.[0]) && typeof textfont?.size === "number";

const roomIn = ({ text, xaxis = "x" }, drawn) => drawn[xaxis.replace("x", "xaxis")]._length / Math.max(1, text[0].length);

const longest = ({ text, textfont }, family) =>
  Math.max(1, ...text.flat().flatMap(linesOf).map((line) => textWidth(plain(line), `${textfont.size}px ${family}`)));

const linesOf = (text) => String(text).split("<br>");

function cut(line, room, font) {
  const shown = NUMBER.test(line) ? plain(line) : shorten(plain(line), room, (part) => textWidth(part, font));
  return shown === plain(line) ? line : marked(shown);
}

const plain = (text) => String(text).replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");

const marked = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

const ARRAYS = {
  int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array,
  int32: Int32Array, uint32: Uint32Array, float32: Float32Array, float64: Float64Array,
};

/** The figure, fresh at every call: plotly writes into what it is given. */
export function readChart(bytes) {
  const { header, buffer, start } = readFrame(bytes);
  return revive(header);

  function revive(value) {
    if (Array.isArray(value)) return value.map(revive);
    if (value === null || typeof value !== "object") return value;
    if (value.dtype && value.shape) return numbers(value);
    for (const [name, each] of Object.entries(value)) value[name] = revive(each);
    return value;
  }

  function numbers({ dtype, at, shape }) {
    const Kind = ARRAYS[dtype];
    const [rows, columns] = shape;
    const count = rows * (columns ?? 1);
    const from = start + at;
    const all = new Kind(buffer.slice(from, from + count * Kind.BYTES_PER_ELEMENT));
    if (columns === undefined) return all;
    return Array.from({ length: rows }, (_, row) => all.subarray(row * columns, (row + 1) * columns));
  }
}

const ARROW = { width: 24, height: 24, path: "M12 16 6.5 10.5l1.8-1.8 2.4 2.5V4h2.6v7.2l2.4-2.5 1.8 1.8zM5 20v-5h2.5v2.5h9V15H19v5z" };

export const saveButton = (view) => ({
  name: "picture",
  title: view.about.words.save,
  icon: ARROW,
  click: (plot) => save(view, plot),
});

/** Drawn anew, but as the reader has turned and enlarged it. */
async function save(view, plot) {
  const { data, layout, about } = readChart(view.bytes);
  const shown = plot._fullLayout;
  for (const name of Object.keys(shown).filter((each) => /^[xy]axis\d*$/.test(each))) {
    layout[name] = { ...layout[name], range: [...shown[name].range], autorange: false };
  }
  const { width, height } = shown;
  const theme = themeOf(view.parts.root);
  const template = templateOf({ ...theme, ...PRINTED });
  fitCells(data, shown, theme.font);
  Object.assign(layout, { template, width, height, paper_bgcolor: PRINTED.paper });
  const address = await globalThis.Plotly.toImage({ data, layout }, { format: "svg", width, height });
  const text = standing(decodeURIComponent(address.slice(address.indexOf(",") + 1)), about.alt);
  saveFile(new Blob([text], { type: "image/svg+xml" }), `${about.file}.svg`);
}

/** With what it shows in words and where it is from; sizes in a unit that all readers of SVG take alike. */
const standing = (svg, alt) =>
  svg
    .replace(/(<svg[^>]*>)/, `$1<title>${escapeXml(alt)}</title><desc>${escapeXml(window.location.href)}</desc>`)
    .replace(/font-size:\s*(\d+)%/g, (_, percent) => `font-size: ${percent / 100}em`);
