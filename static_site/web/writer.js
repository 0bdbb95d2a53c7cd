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

/** A number within the ends of its control, or its first value. */
function numberOf(name, given) {
  const { min, max } = form.elements[name];
  const value = given === null || given.trim() === "" ? NaN : Number(given);
  return value >= Number(min) && value <= Number(max) && (name === "temperature" || Number.isInteger(value)) ? value : first[name];
}

const numbersBy = (valueOf) => Object.fromEntries(NUMBERS.map((name) => [name, numberOf(name, valueOf(name))]));

const changed = (now) => NUMBERS.map((name) => [name, now[name] === first[name] ? "" : now[name]]);

/** A text and what was written after it, with a space between them where a word starts. */
const joined = (text, found) => `${text}${found.joins || /\s$/u.test(text) || !found.text ? "" : " "}${found.text}`;

function show(found, whole, text, now, time) {
  const score = ({ logProbability }) => page.number(logProbability).replace("-", "−");
  showWhole(page, now.off, joined(text, whole), [score(found), score(whole)]);
  part("given").textContent = text;
  part("result").textContent = joined("", found);
  const { labels: [label] } = form.elements.temperature;
  const search = `${label.firstChild.textContent} ${page.number(now.temperature)}`;
  const measured = words.text("measured", { search, tokens: found.ids.length - found.numPrompt, score: score(found) });
  const notes = [`${measured} · ${words.text("timing", { time: page.whole(time) })}`];
  if (!found.isComplete) notes.push(words.text("incomplete", { limit: now.new }));
  part("measured").textContent = notes.join(" · ");
}

function groupsOf(found, text) {
  const labels = { label: data.labels[GROUP], queriesLabel: data.labels.text, keysLabel: data.labels.text };
  const sides = { queryTokens: found.tokens, keyTokens: found.tokens, queryWords: found.words, keyWords: found.words };
  const made = { model: data.model, revision: data.revision, text };
  return [makeGroup({ id: GROUP, ...labels, ...sides, onItself: true, calls: found.calls[GROUP], made })];
}

startTextPage(page, {
  prefix: "ml",
  read: (given) => numbersBy((name) => given.get(name)),
  write: () => numbersBy((name) => form.elements[name].value),
  fill: (now) => NUMBERS.forEach((name) => (form.elements[name].value = now[name])),
  entries: changed,
  appEntries: (now, text) => [["start", text], ...changed(now)],
  load: (progress) => openWriter(data.files, data.sizes, progress),
  compute: (writer, text, { new: newTokens, temperature, topk: topK, seed }, options) =>
    writer.run(text, { newTokens, sampling: { temperature, topK, seed }, ...options }),
  groupsOf, show,
});
