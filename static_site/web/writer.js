// The writer's page: the beginning of a text in, what the model writes out, and every head's map.

import { readPage } from "./page.js";
import { claimCache, claimRows, explain, headEntries, linkApp, listenToExamples, listenToHeads, makeHeadView, readHeads, showWhole, startModel, writeHash } from "./model_page.js";
import { openWriter } from "./writer_model.js";
import { makeGroup } from "./view_source.js";

const TYPING = 350; // milliseconds after the last key
const GROUP = "decoder-self";
const NUMBERS = ["new", "temperature", "topk", "seed"];

const page = readPage();
const { data, words, part } = page;
const form = part("form");
const input = form.elements.text;
const first = Object.fromEntries(NUMBERS.map((name) => [name, Number(form.elements[name].defaultValue)]));
let newest = 0;
let writer = null;

const view = makeHeadView(page, writeAddress, run);

function writeAddress(changes) {
  const now = { ...readAddress(), ...changes };
  const numbers = NUMBERS.map((name) => [name, now[name] === first[name] ? "" : now[name]]);
  writeHash(page, [["text", now.text], ...numbers, ...headEntries(page, now)]);
  linkApp(page, "ml", [["start", now.text || data.example], ...numbers], now);
}

/** A number within the ends of its control, or its first value. */
function numberOf(name, given) {
  const { min, max } = form.elements[name];
  const value = given === null || given.trim() === "" ? NaN : Number(given);
  return value >= Number(min) && value <= Number(max) && (name === "temperature" || Number.isInteger(value)) ? value : first[name];
}

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const numbers = Object.fromEntries(NUMBERS.map((name) => [name, numberOf(name, given.get(name))]));
  return { text: given.get("text") ?? "", ...numbers, ...readHeads(page, given) };
}

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

/** A text and what was written after it, with a space between them where a word starts. */
const joined = (text, found) => `${text}${found.joins || /\s$/u.test(text) || !found.text ? "" : " "}${found.text}`;

async function run() {
  if (!writer) return;
  const mine = (newest += 1);
  const isStopped = () => mine !== newest;
  const now = readAddress();
  const text = input.value || data.example;
  part("problem").hidden = true;
  const started = performance.now();
  const options = { newTokens: now.new, sampling: { temperature: now.temperature, topK: now.topk, seed: now.seed }, isStopped };
  try {
    const found = await writer.run(text, { ...options, off: now.off });
    const time = performance.now() - started;
    const whole = now.off.length && found ? await writer.run(text, options) : found;
    if (!found || !whole) return;
    const labels = { label: data.labels[GROUP], queriesLabel: data.labels.text, keysLabel: data.labels.text };
    const sides = { queryTokens: found.tokens, keyTokens: found.tokens, queryWords: found.words, keyWords: found.words };
    const made = { model: data.model, revision: data.revision, text };
    const groups = [makeGroup({ id: GROUP, ...labels, ...sides, onItself: true, calls: found.calls[GROUP], made })];
    view.open(groups, now, now.off);
    show(found, whole, text, now, time);
    claimRows(page, groups);
    claimCache(page, found.cacheError);
    Object.assign(document.documentElement.dataset, { shown: text, off: now.off.join("_"), written: found.text });
  } catch (error) {
    if (!isStopped()) explain(page, error);
  }
}

function listen() {
  let typing = 0;
  const changed = () => {
    clearTimeout(typing);
    const numbers = Object.fromEntries(NUMBERS.map((name) => [name, numberOf(name, form.elements[name].value)]));
    writeAddress({ text: input.value, ...numbers });
    run();
  };
  form.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(changed, TYPING);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    changed();
  });
  listenToExamples(page, input, changed);
  listenToHeads(page, writeAddress, fill, run);
}

function fill() {
  const now = readAddress();
  input.value = now.text || data.example;
  for (const name of NUMBERS) form.elements[name].value = now[name];
  writeAddress({});
}

async function open(progress) {
  writer = await openWriter(data.files, data.sizes, progress);
  globalThis.atlas = { writer }; // for tests and the curious
}

fill();
listen();
startModel(page, open, run);
