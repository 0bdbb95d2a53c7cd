// The translator's page: English in, French out, and every head's map.

import { readPage } from "./page.js";
import { claimCache, claimRows, explain, headEntries, linkApp, listenToExamples, listenToHeads, makeHeadView, readHeads, showWhole, startModel, writeHash } from "./model_page.js";
import { openTranslator } from "./translator.js";
import { makeGroup } from "./view_source.js";

const TYPING = 350; // milliseconds after the last key

const page = readPage();
const { data, words, part } = page;
const form = part("form");
const [input, search] = [form.elements.text, form.elements.search];
let newest = 0;
let translator = null;

const view = makeHeadView(page, writeAddress, run);

/** The address holds what is shown, so that a link shows it again. */
function writeAddress(changes) {
  const now = { ...readAddress(), ...changes };
  writeHash(page, [["text", now.text], ["beam", now.beam === 1 ? "" : now.beam], ...headEntries(page, now)]);
  linkApp(page, "t", [["text", now.text || data.example], ["search", now.beam === 1 ? "" : `beam ${now.beam}`]], now);
}

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const beam = Number(given.get("beam"));
  return { text: given.get("text") ?? "", beam: data.beams.includes(beam) ? beam : 1, ...readHeads(page, given) };
}

function groupsOf(found) {
  const source = { tokens: found.sourceTokens, words: found.sourceWords, label: data.labels.english };
  const target = { tokens: found.targetTokens, words: found.targetWords, label: data.labels.french };
  const written = { tokens: found.decoderTokens, words: found.decoderWords, label: data.labels.written };
  const sides = { "encoder-self": [source, source], "decoder-self": [target, written], cross: [target, source] };
  return Object.entries(sides).map(([id, [queries, keys]]) =>
    makeGroup({
      id, label: data.labels[id], queriesLabel: queries.label, keysLabel: keys.label,
      queryTokens: queries.tokens, keyTokens: keys.tokens, queryWords: queries.words, keyWords: keys.words,
      onItself: id !== "cross", calls: found.calls[id], errors: id === "cross" ? data.errors : null,
      made: { model: data.model, revision: data.revision, text: found.sourceText },
    }),
  );
}

function showResult(found, whole, off, time) {
  const score = ({ logProbability }) => page.number(logProbability).replace("-", "−");
  showWhole(page, off, whole.text, [score(found), score(whole)]);
  part("result").textContent = found.text;
  const measured = words.text("measured", { search: search.selectedOptions[0].textContent, tokens: found.target.length, score: score(found) });
  const notes = [`${measured} · ${words.text("timing", { time: page.whole(time) })}`];
  if (!found.isComplete) notes.push(words.text("incomplete"));
  if (found.numUnknown) notes.push(words.text("unknown-count", { count: found.numUnknown }));
  part("measured").textContent = notes.join(" ");
}

async function run() {
  if (!translator) return;
  const mine = (newest += 1);
  const isStopped = () => mine !== newest;
  const { beam, off, ...place } = readAddress();
  const text = input.value || data.example;
  part("problem").hidden = true;
  const started = performance.now();
  try {
    const onToken = (written) => !isStopped() && !off.length && (part("result").textContent = written);
    const found = await translator.translate(text, { beam, off, isStopped, onToken });
    const time = performance.now() - started;
    const whole = off.length && found ? await translator.translate(text, { beam, isStopped }) : found;
    if (!found || !whole) return;
    const groups = groupsOf(found);
    view.open(groups, place, off);
    showResult(found, whole, off, time);
    claimRows(page, groups);
    claimCache(page, found.cacheError);
    performance.mark("translated");
    Object.assign(document.documentElement.dataset, { shown: text, off: off.join("_") });
  } catch (error) {
    if (!isStopped()) explain(page, error);
  }
}

function listen() {
  let typing = 0;
  const later = () => {
    clearTimeout(typing);
    typing = setTimeout(() => {
      writeAddress({ text: input.value });
      run();
    }, TYPING);
  };
  input.addEventListener("input", later);
  search.addEventListener("change", () => {
    writeAddress({ beam: Number(search.value) });
    run();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(typing);
    writeAddress({ text: input.value });
    run();
  });
  listenToExamples(page, input, () => form.requestSubmit());
  listenToHeads(page, writeAddress, fill, run);
}

function fill() {
  const { text, beam } = readAddress();
  input.value = text || data.example;
  search.value = beam;
  writeAddress({});
}

async function open(progress) {
  translator = await openTranslator(data.files, data.sizes, progress);
  globalThis.atlas = { translator }; // for tests and the curious
}

fill();
listen();
startModel(page, open, run);
