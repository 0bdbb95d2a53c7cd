// The page of the vision transformers: a sample, a file or a drawing in, class probabilities and maps over it out.

import { decode, openClassifier } from "./classifier.js";
import draw from "./components/drawing/main.js";
import markup from "./components/drawing/view.js";
import { element } from "./components/shared/elements.js";
import { inputError } from "./model.js";
import { showWhole, startPage } from "./model_page.js";
import { loadFile, readPage } from "./page.js";
import { makeGroup } from "./view_source.js";

const GROUP = "encoder-self";
const SHOWN = 5; // labels
const FORMATS = ["PNG", "JPEG", "WebP", "GIF"];

const page = readPage();
const { data, words, part } = page;
const { model: modelField, source: sourceField, sample: sampleField, upload } = part("form").elements;
const FIRST = modelField.options[0].value;
const opened = new Map(); // classifiers by name
let drawing = null;

function read(given) {
  const model = given.get("model") in data.models ? given.get("model") : FIRST;
  const { samples, first } = data.models[model];
  return { model, sample: given.get("sample") in samples ? given.get("sample") : first };
}

/** Show the controls of what the address and the chosen source say. */
function fill(now) {
  modelField.value = now.model;
  sampleField.replaceChildren(...Object.entries(data.models[now.model].samples).map(([name, label]) => new Option(label, name)));
  sampleField.value = now.sample;
  const source = sourceField.value;
  sampleField.closest("label").hidden = source !== "sample";
  upload.closest("label").hidden = source !== "upload";
  part("sheet").hidden = source !== "draw";
}

/** The picture of the chosen source; null where there is none yet. */
async function picture(model, sample) {
  const formats = new Intl.ListFormat(page.language, { type: "disjunction" }).format(FORMATS);
  const sources = {
    sample: async () => new Blob([await loadFile(data.models[model].files.pictures[sample])]),
    upload: () => upload.files[0] ?? null,
    draw: () => drawing,
  };
  const content = await sources[sourceField.value]();
  if (!content) return null;
  const { bytes, pixels } = data.limits;
  if (content.size > bytes) throw inputError("too-heavy", { size: content.size / 2 ** 20, most: bytes / 2 ** 20 });
  const found = await decode(content);
  if (!found) throw inputError("unreadable", { formats });
  const { width, height } = found;
  if (width * height > pixels) throw inputError("too-large", { width, height, most: pixels / 1e6 });
  return found;
}

async function open(name, progress) {
  if (!opened.has(name)) {
    const { files } = data.models[name];
    const pictures = Object.values(files.pictures).map((file) => loadFile(file)); // for a visit without a network
    const [classifier] = await Promise.all([openClassifier({ ...data.start, ...files }, data.models[name].pixels, progress), ...pictures]);
    opened.set(name, classifier);
  }
  return opened.get(name);
}

function groupsOf({ calls, seen }, { model }) {
  const { revision, grid: [rows, columns] } = data.models[model];
  const tokens = ["[CLS]", ...Array.from({ length: rows * columns }, (_, i) => `${Math.floor(i / columns) + 1}, ${(i % columns) + 1}`)];
  const side = (label) => ({ tokens, words: null, label: data.labels[label] });
  const image = { pixels: seen, grid: [rows, columns], special: 1 };
  return [makeGroup({ id: GROUP, label: data.labels.self, queries: side("queries"), keys: side("keys"), onItself: true, calls: calls[GROUP], image, provenance: { model, revision, text: "" } })];
}

/** The most likely label and its probability. */
function answerOf(found, labels) {
  const most = Math.max(...found.probabilities);
  const percent = (100 * most).toLocaleString(page.language, { maximumFractionDigits: 1 });
  return words.text("answer", { label: labels[found.probabilities.indexOf(most)], percent }).replace(/[*`]/gu, "");
}

/** Bars of probabilities, each a name and its share. */
function renderBars(entries) {
  const percent = new Intl.NumberFormat(page.language, { style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1 });
  const barOf = ([label, chance]) => [element("span", "", {}, label), element("i", "", { style: `width: ${100 * chance}%` }), element("b", "", {}, percent.format(chance))];
  part("bars").replaceChildren(...entries.flatMap(barOf));
}

function show(found, whole, { model, sample, off }, timing) {
  const { labels } = data.models[model];
  showWhole(page, off, answerOf(whole, labels), [found, whole].map(({ probabilities }) => Math.log(Math.max(...probabilities))));
  part("result").textContent = answerOf(found, labels);
  const order = labels.map((label, i) => [label, found.probabilities[i]]).sort(([, a], [, b]) => b - a);
  renderBars(order.slice(0, SHOWN));
  part("measured").textContent = timing;
  document.documentElement.dataset.shown = `${model} ${sourceField.value} ${sample}`;
}

const { writeAddress, run, fill: refill } = startPage(page, {
  prefix: "vt",
  read, fill, groupsOf, show,
  display: { mode: "picture", scale: "linear" },
  entries: ({ model, sample }) => [["model", model === FIRST ? "" : model], ["sample", sample === data.models[model].first ? "" : sample]],
  async load(progress, { model }) {
    await open(model, progress);
    return { open, decode };
  },
  async prepare({ model, sample }, progress) {
    const classifier = await open(model, progress);
    const given = await picture(model, sample);
    return given && { given, classifier };
  },
  compute: (_loaded, _now, { off }, { given, classifier }) => classifier.classify(given, off),
});

const change = (changes) => () => {
  writeAddress(changes());
  refill();
  run();
};
const anew = { off: [], head: data.open, pin: "", look: "" };
modelField.addEventListener("change", change(() => ({ ...anew, model: modelField.value, sample: data.models[modelField.value].first })));
sourceField.addEventListener("change", change(() => ({})));
sampleField.addEventListener("change", change(() => ({ sample: sampleField.value })));
upload.addEventListener("change", run);

const parentElement = part("drawing").attachShadow({ mode: "open" });
parentElement.innerHTML = markup;
const setStateValue = (_, address) => {
  drawing = address ? new Blob([Uint8Array.from(atob(address.split(",")[1]), (sign) => sign.charCodeAt(0))], { type: "image/png" }) : null;
  run();
};
draw({ data: data.drawing, parentElement, setStateValue });
