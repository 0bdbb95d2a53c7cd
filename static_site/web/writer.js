// The writer's page: the beginning of a text in, what the model writes out, and every head's map. The writer chooses greedily or
// samples with a cache, then one pass over the whole text gives queries and keys (viz_core/hub/kinds/decoder.py, runs/generation.py).

import { callsOf, gatesOf, largest, loadModel, makeDecoder } from "./model.js";
import { showWhole, startPage } from "./model_page.js";
import { data, number, part, words } from "./page.js";
import { encodeText, openTokenizer, readTokens, wordsOf } from "./tokenizers.js";
import { mersenne } from "./vendor/pure-rand/mersenne.mjs";
import { makeGroup } from "./view_source.js";

const GROUP = "decoder-self";
const NUMBERS = ["new", "temperature", "topk", "seed"];

const form = part("form");
const first = Object.fromEntries(NUMBERS.map((name) => [name, Number(form.elements[name].defaultValue)]));

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
  showWhole(now.off, joined(now.text, whole), [found.logProbability, whole.logProbability]);
  part("given").textContent = now.text;
  part("result").textContent = joined("", found);
  const { labels: [label] } = form.elements.temperature;
  const search = `${label.firstChild.textContent} ${number(now.temperature)}`;
  const notes = [words.text("measured", { search, tokens: found.ids.length - found.numPrompt, score: number(found.logProbability) }), timing];
  if (!found.isComplete) notes.push(words.text("incomplete", { limit: now.new }));
  part("measured").textContent = notes.join(" · ");
}

function groupsOf(found, { text }) {
  const side = { tokens: found.tokens, words: found.words, label: data.labels.text };
  const provenance = { model: data.model, revision: data.revision, text };
  return [makeGroup({ id: GROUP, label: data.labels[GROUP], queries: side, keys: side, onItself: true, calls: found.calls[GROUP], provenance })];
}

startPage({
  prefix: "ml",
  read: (valueOf) => Object.fromEntries(NUMBERS.map((name) => [name, numberOf(name, valueOf(name))])),
  entries: changed,
  linked: (now) => [["start", now.text], ...changed(now)].map(([name, value]) => [`ml-${name}`, value]),
  load: async (progress) => ({ model: await openWriter(data.files, data.room, progress) }),
  compute: ({ model }, { text, new: newTokens, temperature, topk: topK, seed }, options) => model.run(text, { newTokens, sampling: { temperature, topK, seed }, ...options }),
  groupsOf, folded: null, show,
});

/** The model of the files that `loadModel` takes, and of the tokenizer's, with room for so many tokens. */
async function openWriter(files, room, progress) {
  const [{ writer }, tokenizer] = await Promise.all([loadModel(files, progress), openTokenizer(files.tokenizer)]);
  const decoder = makeDecoder(writer);
  const end = tokenizer.id("</s>");
  const textOf = (ids) => tokenizer.decode(ids).replace(/^ +| +$/gu, "");

  /** Continue a text, and record queries and keys of every layer; null where it was stopped. `sampling` is {temperature, topK, seed}. */
  async function run(text, { newTokens = 20, sampling = {}, off = [], isStopped = () => false, onToken = () => {} } = {}) {
    const prompt = encodeText(tokenizer, text, room);
    const feeds = { gates: gatesOf(writer, off, [GROUP]) };
    const limit = Math.min(newTokens, room - prompt.length);
    const found = await decoder.write(prompt, feeds, { limit, end, choose: chooser(sampling), isStopped, onToken: (ids) => onToken(textOf(ids)) });
    if (!found) return null;
    const ids = [...prompt, ...found.ids];
    const { made, logProbability, cacheError } = await decoder.reread(ids, prompt.length - 1, found, feeds);
    if (isStopped()) return null;
    const tokens = readTokens(tokenizer, ids);
    return {
      ids, numPrompt: prompt.length, text: textOf(found.ids), logProbability, cacheError,
      joins: found.ids.length > 0 && !tokens[prompt.length].startsWord && !tokens[prompt.length].special,
      tokens: tokens.map(({ label }) => label), words: wordsOf(tokens),
      isComplete: newTokens === 0 || ids.at(-1) === end,
      calls: callsOf(made, off),
    };
  }

  return { run };
}

/** Numbers of torch.rand on a CPU, so that a seed draws the same as in Python: 53 bits of the Mersenne Twister, in [0, 1). */
function makeUniform(seed) {
  const bits = mersenne(seed);
  return () => ((bits.next() & 0x1fffff) * 2 ** 32 + (bits.next() >>> 0)) / 2 ** 53; // the lower 53 of 64 bits
}

/** Chooses the next token of logits: the likeliest at temperature 0, else a draw from softmax(logits / temperature). */
function chooser({ temperature = 0, topK = 0, seed = 0 }) {
  if (!temperature) return (logits) => largest(logits);
  const uniform = makeUniform(seed);
  return (logits) => {
    const scaled = logits.map((logit) => logit / Math.fround(temperature));
    const least = topK && topK < scaled.length ? scaled.toSorted()[scaled.length - topK] : -Infinity;
    // The largest of logit - log(-log u) is a draw from the softmax (Gumbel 1954); each token takes one u, kept or not.
    const noisy = scaled.map((logit) => {
      const noise = Math.fround(Math.log(-Math.log(Math.max(uniform(), 1e-300))));
      return logit < least ? -Infinity : logit - noise;
    });
    return largest(noisy);
  };
}
