// The page of the vision transformers: a sample, a file or a drawing in, class probabilities and maps over it out.

import { decode, openClassifier } from "./classifier.js";
import draw from "./components/drawing/main.js";
import markup from "./components/drawing/view.js";
import { element } from "./components/shared/elements.js";
import { inputError } from "./model.js";
import { showWhole, startPage } from "./model_page.js";
import { data, language, loadFile, part, words } from "./page.js";
import { makeGroup } from "./view_source.js";

const GROUP = "encoder-self";
const SHOWN = 5; // labels
const FORMATS = ["PNG", "JPEG", "WebP", "GIF"];

const { model: modelField, source: sourceField, sample: sampleField, upload } = part("form").elements;
const FIRST = modelField.options[0].value;
const opened = new Map(); // classifiers by name
let drawing = null;

function read(valueOf) {
  const model = valueOf("model") in data.models ? valueOf("model") : FIRST;
  const { samples, first } = data.models[model];
  return { model, sample: valueOf("sample") in samples ? valueOf("sample") : first };
}

/** Show the controls of the model and of the chosen source. */
function fill({ model, sample }) {
  sampleField.replaceChildren(...Object.entries(data.models[model].samples).map(([name, label]) => new Option(label, name)));
  sampleField.value = sample;
  for (const [name, { parentElement }] of Object.entries({ sample: sampleField, upload, draw: part("drawing") })) parentElement.hidden = sourceField.value !== name;
}

/** The picture of the chosen source; null where there is none yet. */
async function picture(model, sample) {
  const formats = new Intl.ListFormat(language, { type: "disjunction" }).format(FORMATS);
  const sources = {
    sample: async () => new Blob([await loadFile(data.files[model].pictures[sample])]),
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
    const files = data.files[name];
    const pictures = Object.values(files.pictures).map((file) => loadFile(file)); // for a visit without a network
    const [classifier] = await Promise.all([openClassifier({ ...data.files, ...files }, data.models[name].form, progress), ...pictures]);
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
  const percent = (100 * most).toLocaleString(language, { maximumFractionDigits: 1 });
  return words.text("answer", { label: labels[found.probabilities.indexOf(most)], percent }).replace(/[*`]/gu, "");
}

const percent = new Intl.NumberFormat(language, { style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1 });
const barOf = ([label, chance]) => [element("span", "", {}, label), element("i", "", { style: `width: ${100 * chance}%` }), element("b", "", {}, percent.format(chance))];

function show(found, whole, { model, sample, off }, timing) {
  const { labels } = data.models[model];
  showWhole(off, answerOf(whole, labels), [found, whole].map(({ probabilities }) => Math.log(Math.max(...probabilities))));
  part("result").textContent = answerOf(found, labels);
  const order = labels.map((label, i) => [label, found.probabilities[i]]).sort(([, a], [, b]) => b - a);
  part("bars").replaceChildren(...order.slice(0, SHOWN).flatMap(barOf));
  part("measured").textContent = timing;
  document.documentElement.dataset.shown = `${model} ${sourceField.value} ${sample}`;
}

const { run } = startPage({
  prefix: "vt",
  read, fill, groupsOf, show,
  fresh: (now, { model }) => (model === now.model ? {} : { off: [], head: data.open, pin: "", look: "" }),
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

const parentElement = part("drawing").attachShadow({ mode: "open" });
parentElement.innerHTML = markup;
const setStateValue = (_, address) => {
  drawing = address ? new Blob([Uint8Array.from(atob(address.split(",")[1]), (sign) => sign.charCodeAt(0))], { type: "image/png" }) : null;
  run();
};
draw({ data: data.drawing, parentElement, setStateValue });
