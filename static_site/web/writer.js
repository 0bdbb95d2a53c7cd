// The writer's page: the beginning of a text in, what the model writes out, and every head's map.

import { showWhole, startTextPage } from "./model_page.js";
import { readPage } from "./page.js";
import { makeGroup } from "./view_source.js";
import { openWriter } from "./writer_model.js";

const GROUP = "decoder-self";
const NUMBERS = ["new", "temperature", "topk", "seed"];

const page = readPage();
const { data, words, part } = page;
const form = part("form");
const first = Object.fromEntries(NUMBERS.map((name) => [name, Number(form.elements[name].defaultValue)]));
let writer = null;

/** A number within the ends of its control, or its first value. */
function numberOf(name, given) {
  const { min, max } = form.elements[name];
  const value = given === null || given.trim() === "" ? NaN : Number(given);
  return value >= Number(min) && value <= Number(max) && (name === "temperature" || Number.isInteger(value)) ? value : first[name];
}

const changed = (now) => NUMBERS.map((name) => [name, now[name] === first[name] ? "" : now[name]]);

/** A text and what was written after it, with a space between them where a word starts. */
const joined = (text, found) => `${text}${found.joins || /\s$/u.test(text) || !found.text ? "" : " "}${found.text}`;

function show(found, whole, now, timing) {
  showWhole(page, now.off, joined(now.text, whole), [found.logProbability, whole.logProbability]);
  part("given").textContent = now.text;
  part("result").textContent = joined("", found);
  const { labels: [label] } = form.elements.temperature;
  const search = `${label.firstChild.textContent} ${page.number(now.temperature)}`;
  const score = page.number(found.logProbability).replace("-", "−");
  const notes = [words.text("measured", { search, tokens: found.ids.length - found.numPrompt, score }), timing];
  if (!found.isComplete) notes.push(words.text("incomplete", { limit: now.new }));
  part("measured").textContent = notes.join(" · ");
}

function groupsOf(found, { text }) {
  const side = { tokens: found.tokens, words: found.words, label: data.labels.text };
  const provenance = { model: data.model, revision: data.revision, text };
  return [makeGroup({ id: GROUP, label: data.labels[GROUP], queries: side, keys: side, onItself: true, calls: found.calls[GROUP], provenance })];
}

startTextPage(page, {
  prefix: "ml",
  read: (valueOf) => Object.fromEntries(NUMBERS.map((name) => [name, numberOf(name, valueOf(name))])),
  entries: changed,
  linked: (now) => [["start", now.text], ...changed(now)].map(([name, value]) => [`ml-${name}`, value]),
  async load(progress) {
    writer = await openWriter(data.files, data.sizes, progress);
    return { model: writer };
  },
  compute: ({ text, new: newTokens, temperature, topk: topK, seed }, options) => writer.run(text, { newTokens, sampling: { temperature, topK, seed }, ...options }),
  groupsOf, show,
});
