// Texts in the cells of heatmaps: plotly lets them run over the next cells. Here they shrink; what is still too long is cut.

import { textWidth } from "../shared/text.js";

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
      trace.text = trace.text.map((row) => row.map((text) => cut(text, room, `${shown}px ${family}`)));
    }
  }
  return true;
}

const isLabelled = ({ type, text, texttemplate, textfont }) =>
  type === "heatmap" && texttemplate === "%{text}" && Array.isArray(text?.[0]) && typeof textfont?.size === "number";

const roomIn = ({ text, xaxis = "x" }, drawn) => drawn[xaxis.replace("x", "xaxis")]._length / Math.max(1, text[0].length);

const longest = ({ text, textfont }, family) =>
  Math.max(1, ...text.flat().map((each) => textWidth(plain(each), `${textfont.size}px ${family}`)));

function cut(text, room, font) {
  const letters = Array.from(plain(text));
  if (textWidth(letters.join(""), font) <= room) return text;
  while (letters.length && textWidth(`${letters.join("")}…`, font) > room) letters.pop();
  return marked(`${letters.join("")}…`);
}

const plain = (text) => String(text).replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");

const marked = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
