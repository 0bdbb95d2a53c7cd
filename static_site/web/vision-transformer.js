// The page of the vision transformers: a sample, a file or a drawing in, class probabilities and maps over it out.

import { decode, openClassifier } from "./classifier.js";
import draw from "./components/drawing/main.js";
import { ROOT } from "./files.js";
import { InputError } from "./model.js";
import { claimRows, explain, headEntries, linkApp, listenToHeads, makeHeadView, readHeads, renderBars, showWhole, startModel, writeHash } from "./model_page.js";
import { readPage } from "./page.js";
import { makeGroup } from "./view_source.js";

const GROUP = "encoder-self";
const SHOWN = 5; // labels
const FORMATS = ["PNG", "JPEG", "WebP", "GIF"];

const page = readPage();
const { data, words, part } = page;
const form = part("form");
const { model: modelField, source: sourceField, sample: sampleField, upload } = form.elements;
const FIRST = modelField.options[0].value;
const opened = new Map(); // classifiers by name
let newest = 0;
let drawing = null;

const view = makeHeadView(page, writeAddress, run, { mode: "picture", scale: "linear" });

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const model = given.get("model") in data.models ? given.get("model") : FIRST;
  const { samples, first } = data.models[model];
  return { model, sample: given.get("sample") in samples ? given.get("sample") : first, ...readHeads(page, given) };
}

function writeAddress(changes) {
  const now = { ...readAddress(), ...changes };
  const isFirst = now.sample === data.models[now.model].first;
  writeHash(page, [["model", now.model === FIRST ? "" : now.model], ["sample", isFirst ? "" : now.sample], ...headEntries(page, now)]);
  linkApp(page, "vt", [["model", now.model === FIRST ? "" : now.model], ["sample", isFirst ? "" : now.sample]], now);
}

/** Show the controls of what the address and the chosen source say. */
function fill() {
  const now = readAddress();
  modelField.value = now.model;
  sampleField.replaceChildren(...Object.entries(data.models[now.model].samples).map(([name, label]) => new Option(label, name)));
  sampleField.value = now.sample;
  const source = sourceField.value;
  sampleField.closest("label").hidden = source !== "sample";
  upload.closest("label").hidden = source !== "upload";
  part("sheet").hidden = source !== "draw";
  writeAddress({});
}

/** The picture of the chosen source; null where there is none yet. */
async function picture(sample) {
  const blob = { sample: () => fetchSample(sample), upload: () => upload.files[0] ?? null, draw: () => drawing }[sourceField.value]();
  const content = await blob;
  if (!content) return null;
  const { bytes, pixels } = data.limits;
  if (content.size > bytes) throw new InputError("too-heavy", { size: content.size / 2 ** 20, most: bytes / 2 ** 20 });
  const found = await decode(content);
  if (!found) throw new InputError("unreadable", { formats: new Intl.ListFormat(page.language, { type: "disjunction" }).format(FORMATS) });
  const { width, height } = found;
  if (width * height > pixels) throw new InputError("too-large", { width, height, most: pixels / 1e6 });
  return found;
}

async function fetchSample(name) {
  const response = await fetch(new URL(`pictures/${name}.png`, ROOT));
  if (!response.ok) throw new InputError("unreadable", { formats: FORMATS.join(", ") });
  return response.blob();
}

async function open(name, progress) {
  if (!opened.has(name)) opened.set(name, await openClassifier({ ...data.start, ...data.models[name].files }, data.models[name], progress));
  return opened.get(name);
}

function groupOf({ calls, seen }, name) {
  const { grid: [rows, columns] } = data.models[name].sizes;
  const tokens = ["[CLS]", ...Array.from({ length: rows * columns }, (_, i) => `${Math.floor(i / columns) + 1}, ${(i % columns) + 1}`)];
  const labels = { label: data.labels.self, queriesLabel: data.labels.queries, keysLabel: data.labels.keys };
  const provenance = { model: name, revision: data.models[name].revision, text: "" };
  return makeGroup({ id: GROUP, ...labels, queryTokens: tokens, keyTokens: tokens, onItself: true, calls, image: { pixels: seen, grid: [rows, columns], special: 1 }, provenance });
}

/** The most likely label and its probability. */
function answerOf(found, labels) {
  const best = found.probabilities.indexOf(Math.max(...found.probabilities));
  return words.text("answer", { label: labels[best], percent: (100 * found.probabilities[best]).toLocaleString(page.language, { maximumFractionDigits: 1 }) });
}

const plainOf = (text) => text.replace(/[*`]/gu, "");

function show(found, whole, labels, off, time) {
  const score = ({ probabilities }) => page.number(Math.log(Math.max(...probabilities))).replace("-", "−");
  showWhole(page, off, plainOf(answerOf(whole, labels)), [score(found), score(whole)]);
  part("result").textContent = plainOf(answerOf(found, labels));
  const order = found.probabilities.map((chance, label) => ({ chance, label })).sort((a, b) => b.chance - a.chance);
  renderBars(page, order.slice(0, SHOWN).map(({ chance, label }) => [labels[label], chance]));
  part("measured").textContent = words.text("timing", { time: page.whole(time) });
}

async function run(progress) {
  const mine = (newest += 1);
  const isStopped = () => mine !== newest;
  const now = readAddress();
  part("problem").hidden = true;
  try {
    const [given, classifier] = await Promise.all([picture(now.sample), open(now.model, progress)]);
    if (!given || isStopped()) return;
    const started = performance.now();
    const found = await classifier.classify(given, now.off);
    const time = performance.now() - started;
    const whole = now.off.length ? await classifier.classify(given) : found;
    if (isStopped()) return;
    const groups = [groupOf(found, now.model)];
    view.open(groups, now, now.off);
    show(found, whole, data.models[now.model].labels, now.off, time);
    claimRows(page, groups);
    Object.assign(document.documentElement.dataset, { shown: `${now.model} ${sourceField.value} ${now.sample}`, off: now.off.join("_") });
  } catch (error) {
    if (!isStopped()) explain(page, error);
  }
}

function mountDrawing() {
  const parentElement = part("drawing").attachShadow({ mode: "open" });
  parentElement.innerHTML = part("drawing-markup").innerHTML;
  const setStateValue = (_, address) => {
    drawing = address ? new Blob([Uint8Array.from(atob(address.split(",")[1]), (sign) => sign.charCodeAt(0))], { type: "image/png" }) : null;
    run();
  };
  draw({ data: data.drawing, parentElement, setStateValue });
}

function listen() {
  modelField.addEventListener("change", () => {
    history.replaceState(null, "", location.pathname + location.search);
    writeAddress({ model: modelField.value, sample: data.models[modelField.value].first });
    fill();
    run();
  });
  sourceField.addEventListener("change", () => {
    fill();
    run();
  });
  sampleField.addEventListener("change", () => {
    writeAddress({ sample: sampleField.value });
    run();
  });
  upload.addEventListener("change", () => run());
  form.addEventListener("submit", (event) => event.preventDefault());
  listenToHeads(page, writeAddress, fill, run);
}

fill();
listen();
mountDrawing();
startModel(page, async (progress) => {
  await open(readAddress().model, progress);
  globalThis.atlas = { open, decode }; // for tests and the curious
}, run);
