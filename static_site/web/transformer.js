// The translator's page: English in, French out, and every head's map.

import { showWhole, startPage } from "./model_page.js";
import { data, number, part, words } from "./page.js";
import { openTranslator } from "./translator.js";
import { makeGroup } from "./view_source.js";

const { beam: beamField } = part("form").elements;

function groupsOf(found) {
  const side = (name, label) => ({ tokens: found[`${name}Tokens`], words: found[`${name}Words`], label: data.labels[label] });
  const [source, target, written] = [side("source", "english"), side("target", "french"), side("decoder", "written")];
  const sides = { "encoder-self": [source, source], "decoder-self": [target, written], cross: [target, source] };
  return Object.entries(sides).map(([id, [queries, keys]]) =>
    makeGroup({
      id, label: data.labels[id], queries, keys, onItself: id !== "cross", calls: found.calls[id], alignmentErrors: id === "cross" ? data.errors : null,
      provenance: { model: data.model, revision: data.revision, text: found.sourceText },
    }),
  );
}

function show(found, whole, { off }, timing) {
  showWhole(off, whole.text, [found.logProbability, whole.logProbability]);
  part("result").textContent = found.text;
  const measured = words.text("measured", { search: beamField.selectedOptions[0].textContent, tokens: found.target.length, score: number(found.logProbability) });
  const notes = [`${measured} · ${timing}`];
  if (!found.isComplete) notes.push(words.text("incomplete"));
  if (found.numUnknown) notes.push(words.text("unknown-count", { count: found.numUnknown }));
  part("measured").textContent = notes.join(" ");
  performance.mark("translated");
}

startPage({
  prefix: "t",
  read: (valueOf) => ({ beam: data.beams.includes(Number(valueOf("beam"))) ? Number(valueOf("beam")) : 1 }),
  entries: ({ beam }) => [["beam", beam === 1 ? "" : beam]],
  linked: ({ text, beam }) => [["t-text", text], ["t-search", beam === 1 ? "" : `beam ${beam}`]],
  load: async (progress) => ({ model: await openTranslator(data.files, progress) }),
  compute: ({ model }, { text, beam }, options) => model.translate(text, { beam, ...options }),
  groupsOf, show,
});
