// The page of recorded training runs: every head's map at a step, and curves over the updates.

import { readFrame } from "./components/shared/mount.js";
import { makePalette } from "./components/shared/canvas.js";
import { bindControls } from "./controls.js";
import { COLOURS, drawCurves, SCALES } from "./figures.js";
import { loadFile, unzip } from "./files.js";
import { float16Values } from "./float16.js";
import { keepSite, readPage, renderClaim } from "./page.js";

const SOLVED = 0.85; // as in the app (pages/learning/claims.py)
const LEAST_INDUCTION = 0.5;
const MOST_POINTS = 400; // of a curve: more are too close to be told apart
const page = readPage();
const { data, words, part } = page;
const palette = makePalette(SCALES.weights);
const films = new Map();
let newest = 0;

/** A run's seeds: {shots, read, loss, accuracy, held_out, maps, previous, induction}, each array {shape, values}. */
export function filmsOf(name) {
  if (!films.has(name)) films.set(name, load(name));
  return films.get(name);
}

async function load(name) {
  const { header, buffer, start } = readFrame(new Uint8Array(await unzip(await loadFile(data.runs[name].file))));
  const values = float16Values();
  const arrayOf = (key, { offset, shape }) => {
    const count = shape.reduce((product, side) => product * side, 1);
    const bytes = buffer.slice(start + offset, start + offset + count * (key === "maps" ? 2 : 4));
    return { shape, values: key === "maps" ? Float32Array.from(new Uint16Array(bytes), (bits) => values[bits]) : new Float32Array(bytes) };
  };
  return header.seeds.map((film) => Object.fromEntries(Object.entries(film).map(([key, value]) => [key, Array.isArray(value) ? value : arrayOf(key, value)])));
}

/** The maps of a snapshot, every row divided by its sum: [layer][head] as float32. */
export function mapsAt({ maps }, shot) {
  const [, layers, heads, n] = maps.shape;
  return Array.from({ length: layers }, (_, layer) =>
    Array.from({ length: heads }, (_, head) => {
      const from = ((shot * layers + layer) * heads + head) * n * n;
      const map = maps.values.slice(from, from + n * n);
      for (let row = 0; row < n * n; row += n) {
        const sum = map.subarray(row, row + n).reduce((total, weight) => total + weight, 0);
        for (let i = row; i < row + n; i += 1) map[i] /= sum;
      }
      return map;
    }),
  );
}

/** Values of a measure over the snapshots for the head that has most of it at the end, with that head's name. */
function strongest({ shape, values }) {
  const [shots, layers, heads] = shape;
  const last = values.subarray((shots - 1) * layers * heads);
  const head = last.indexOf(Math.max(...last));
  const name = words.text("head_name", { layer: Math.floor(head / heads) + 1, head: (head % heads) + 1 });
  return { name, values: Array.from({ length: shots }, (_, shot) => values[shot * layers * heads + head]) };
}

async function show({ run, seed, step }) {
  const mine = (newest += 1);
  const film = (await filmsOf(run))[seed];
  if (mine !== newest) return;
  const shot = film.shots.findLastIndex((each) => each <= step);
  const at = page.digits(film.shots[shot]);
  const percent = page.percent(film.held_out.values[shot]);
  part("shot").textContent = words.text("shot", { run: words.text(`option.${run}`), seed, step: at, right: percent });
  drawMaps(film, shot, at);
  const heads = Object.fromEntries(["previous", "induction"].filter((name) => name in film).map((name) => [name, strongest(film[name])]));
  drawCharts(film, shot, heads, { step: at, right: percent, last: page.digits(film.shots.at(-1)) });
  const repeats = data.runs[run].task === "repeat";
  part("claims").hidden = !repeats;
  if (repeats) {
    const claim = (name, measured, limit) => renderClaim(part(`claim-${name}`), page, words.text(`claim.${name}`), measured, limit, "at-least");
    claim("learns", film.held_out.values.at(-1), SOLVED);
    claim("finds", Math.max(...film.induction.values.subarray((film.shots.length - 1) * film.induction.shape[1] * film.induction.shape[2])), LEAST_INDUCTION);
  }
  document.documentElement.dataset.shown = [run, seed, film.shots[shot]].join();
}

function drawMaps(film, shot, at) {
  const maps = mapsAt(film, shot);
  const n = film.read.length;
  const host = part("maps");
  host.style.setProperty("--heads", maps[0].length);
  host.setAttribute("aria-label", words.text("alt.every-head", { layers: maps.length, step: at, text: film.read.join(" ") }));
  host.replaceChildren(...maps.flatMap((heads, layer) => heads.map((map, head) => {
    const canvas = Object.assign(document.createElement("canvas"), { width: n, height: n });
    const context = canvas.getContext("2d");
    const image = context.createImageData(n, n);
    const pixels = new Uint32Array(image.data.buffer);
    map.forEach((weight, i) => (pixels[i] = palette[Math.round(255 * Math.min(1, weight))]));
    context.putImageData(image, 0, 0);
    const figure = document.createElement("figure");
    const caption = Object.assign(document.createElement("figcaption"), { textContent: words.text("head_name", { layer: layer + 1, head: head + 1 }) });
    figure.append(canvas, caption);
    return figure;
  })));
}

function drawCharts(film, shot, heads, values) {
  const last = film.shots.at(-1);
  const x = { title: words.text("figure.updates"), low: 0, high: last };
  const points = (of) => film.shots.map((step, i) => [step, of[i]]);
  const thin = Math.ceil(film.loss.values.length / MOST_POINTS);
  const thinned = (of) => Array.from(of, (value, i) => [i + 1, value]).filter((_, i) => i % thin === 0);
  const mark = film.shots[shot];
  const pick = (step) => controls.set("step", Math.round(step));
  const named = Object.entries(heads).map(([name, { name: kind, values: of }], i) => ({ name: words.text("with-kind", { title: words.text(`figure.${name}`), kind }), colour: COLOURS[i + 1], dash: ["6 3", "2 3"][i], points: points(of) }));
  const measured = Object.fromEntries(Object.entries(heads).map(([name, each]) => [name, page.number(each.values[shot])]));
  const alt = named.length === 2 ? words.text("alt.together", { ...values, ...measured }) : words.text("alt.curve", { ...values, right: page.percent(film.held_out.values.at(-1)) });
  const accuracy = [
    { name: words.text("with-kind", { title: words.text("figure.accuracy"), kind: words.text("figure.held-out") }), colour: COLOURS[0], points: points(film.held_out.values) },
    ...named,
  ];
  drawCurves(part("together"), { alt, series: accuracy, x, y: { title: "", low: 0, high: 1 }, mark, pick }, page.digits);
  const loss = [{ name: words.text("figure.loss"), colour: COLOURS[0], points: thinned(film.loss.values) }];
  const most = Math.max(...film.loss.values);
  drawCurves(part("loss"), { alt: words.text("alt.curve", { ...values, right: page.percent(film.held_out.values.at(-1)) }), series: loss, x, y: { title: "", low: 0, high: most }, mark, pick }, page.digits);
}

const controls = bindControls(page, show, {
  limits: ({ run }) => ({ step: { max: data.runs[run].last, step: data.runs[run].every } }),
});
keepSite().catch(() => false);
// The other runs, so that they are there without a network.
filmsOf(Object.keys(data.runs)[0]).then(() => Object.keys(data.runs).reduce((before, name) => before.then(() => filmsOf(name)), Promise.resolve()));
