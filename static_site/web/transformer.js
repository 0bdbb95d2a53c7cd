// The translator's page: English in, French out, and every head's map.

import { showWhole, startTextPage } from "./model_page.js";
import { readPage } from "./page.js";
import { openTranslator } from "./translator.js";
import { makeGroup } from "./view_source.js";

const page = readPage();
const { data, words, part } = page;
const { search } = part("form").elements;

const beamOf = (value) => (data.beams.includes(Number(value)) ? Number(value) : 1);

function groupsOf(found) {
  const source = { tokens: found.sourceTokens, words: found.sourceWords, label: data.labels.english };
  const target = { tokens: found.targetTokens, words: found.targetWords, label: data.labels.french };
  const written = { tokens: found.decoderTokens, words: found.decoderWords, label: data.labels.written };
  const sides = { "encoder-self": [source, source], "decoder-self": [target, written], cross: [target, source] };
  return Object.entries(sides).map(([id, [queries, keys]]) =>
    makeGroup({
      id, label: data.labels[id], queriesLabel: queries.label, keysLabel: keys.label,
      queryTokens: queries.tokens, keyTokens: keys.tokens, queryWords: queries.words, keyWords: keys.words,
      onItself: id !== "cross", calls: found.calls[id], alignmentErrors: id === "cross" ? data.errors : null,
      provenance: { model: data.model, revision: data.revision, text: found.sourceText },
    }),
  );
}

function show(found, whole, _text, { off }, time) {
  const score = ({ logProbability }) => page.number(logProbability).replace("-", "−");
  showWhole(page, off, whole.text, [score(found), score(whole)]);
  part("result").textContent = found.text;
  const measured = words.text("measured", { search: search.selectedOptions[0].textContent, tokens: found.target.length, score: score(found) });
  const notes = [`${measured} · ${words.text("timing", { time: page.whole(time) })}`];
  if (!found.isComplete) notes.push(words.text("incomplete"));
  if (found.numUnknown) notes.push(words.text("unknown-count", { count: found.numUnknown }));
  part("measured").textContent = notes.join(" ");
  performance.mark("translated");
}

startTextPage(page, {
  prefix: "t",
  read: (given) => ({ beam: beamOf(given.get("beam")) }),
  write: () => ({ beam: beamOf(search.value) }),
  fill: ({ beam }) => (search.value = beam),
  entries: ({ beam }) => [["beam", beam === 1 ? "" : beam]],
  appEntries: ({ beam }, text) => [["text", text], ["search", beam === 1 ? "" : `beam ${beam}`]],
  load: (progress) => openTranslator(data.files, data.sizes, progress),
  compute: (translator, text, { beam }, options) => translator.translate(text, { beam, ...options }),
  groupsOf, show,
});
