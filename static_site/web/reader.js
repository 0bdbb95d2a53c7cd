// The reader's page: a text in which a visitor masks words, what the model predicts for them, and every head's map.

import { readPage } from "./page.js";
import { claimRows, explain, headEntries, linkApp, listenToExamples, listenToHeads, makeHeadView, readHeads, renderBars, showWhole, startModel, writeHash } from "./model_page.js";
import { openReader } from "./reader_model.js";
import { makeGroup } from "./view_source.js";

const TYPING = 350; // milliseconds after the last key
const GROUP = "encoder-self";
const SHOWN = 5; // tokens of each mask

const page = readPage();
const { data, words, part } = page;
const form = part("form");
const input = form.elements.text;
let newest = 0;
let reader = null;

const view = makeHeadView(page, writeAddress, run);

function writeAddress(changes) {
  const now = { ...readAddress(), ...changes };
  const isFirst = !now.text && now.mask.join() === data.mask.join();
  writeHash(page, [["text", now.text], ["mask", isFirst ? "" : now.mask.join("_") || (now.text ? "" : "0")], ...headEntries(page, now)]);
  linkApp(page, "ml", [["model", data.model], ["text", now.text || data.example]], now);
}

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const text = given.get("text") ?? "";
  const mask = given.has("mask") ? given.get("mask").split("_").map(Number).filter((number) => number > 0) : data.mask;
  return { text, mask: text && !given.has("mask") ? [] : mask, ...readHeads(page, given) };
}

/** The most likely tokens of a mask. */
const mostLikely = (chances) => [...chances.keys()].sort((a, b) => chances[b] - chances[a]).slice(0, SHOWN);

/** A word, with the most likely token in place of each masked one. */
const guessOf = ({ ids, places }, { chances }) => reader.textOf(ids.map((id, i) => (chances.has(places[i]) ? mostLikely(chances.get(places[i]))[0] : id)));

/** The words as buttons that mask them, and what the model predicts for those that are masked. */
function wordButtons(found, mask) {
  return found.parts.flatMap((word) => {
    const button = document.createElement("button");
    const isMasked = word.places.some((place) => found.chances.has(place));
    Object.assign(button, { type: "button", textContent: guessOf(word, found) });
    button.setAttribute("aria-pressed", isMasked);
    button.addEventListener("click", () => {
      writeAddress({ text: input.value, mask: isMasked ? mask.filter((number) => number !== word.number) : [...mask, word.number] });
      run();
    });
    return [button, " "];
  });
}

function show(found, whole, { off, mask }, time) {
  const score = ({ chances }) => page.number([...chances.values()].reduce((sum, each) => sum + Math.log(Math.max(...each)), 0)).replace("-", "−");
  showWhole(page, found.chances.size ? off : [], whole.parts.map((word) => guessOf(word, whole)).join(" "), [score(found), score(whole)]);
  part("all-on").hidden = off.length === 0;
  const focused = [...part("result").children].indexOf(document.activeElement);
  part("result").replaceChildren(...wordButtons(found, mask));
  part("result").children[focused]?.focus();
  const numbered = (i) => (found.chances.size > 1 ? `${i + 1}: ` : "");
  renderBars(page, [...found.chances.values()].flatMap((chances, i) => mostLikely(chances).map((id) => [`${numbered(i)}${reader.label(id)}`, chances[id]])));
  part("measured").textContent = words.text("timing", { time: page.whole(time) });
}

async function run() {
  if (!reader) return;
  const mine = (newest += 1);
  const isStopped = () => mine !== newest;
  const now = readAddress();
  const text = input.value || data.example;
  part("problem").hidden = true;
  const started = performance.now();
  try {
    const found = await reader.read(text, now.mask, now.off);
    const time = performance.now() - started;
    const whole = now.off.length ? await reader.read(text, now.mask) : found;
    if (isStopped()) return;
    const labels = { label: data.labels[GROUP], queriesLabel: data.labels.text, keysLabel: data.labels.text };
    const sides = { queryTokens: found.tokens, keyTokens: found.tokens, queryWords: found.words, keyWords: found.words };
    const made = { model: data.model, revision: data.revision, text };
    const groups = [makeGroup({ id: GROUP, ...labels, ...sides, onItself: true, calls: found.calls, made })];
    view.open(groups, now, now.off);
    show(found, whole, now, time);
    claimRows(page, groups);
    Object.assign(document.documentElement.dataset, { shown: text, off: now.off.join("_"), masked: now.mask.join("_") });
  } catch (error) {
    if (!isStopped()) explain(page, error);
  }
}

function listen() {
  let typing = 0;
  const changed = () => {
    clearTimeout(typing);
    writeAddress({ text: input.value });
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
  listenToExamples(page, input, () => {
    writeAddress({ text: input.value, mask: data.examples[input.value] });
    run();
  });
  listenToHeads(page, writeAddress, fill, run);
}

function fill() {
  input.value = readAddress().text || data.example;
  writeAddress({});
}

async function open(progress) {
  reader = await openReader(data.files, data.sizes, progress);
  globalThis.atlas = { reader }; // for tests and the curious
}

fill();
listen();
startModel(page, open, run);
