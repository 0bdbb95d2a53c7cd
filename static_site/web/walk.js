// The page of the walk: one translation through the whole model, played by the app's component, with the numbers of
// viz_core/lab/walk.py, framed as in ui/widgets/walk.py.

import { attentionWeights, openingHead, separatorsOf } from "./attention.js";
import showWalk from "./components/walk/main.js";
import markup from "./components/walk/view.js";
import { frame, makeSections } from "./files.js";
import { logSum, mostLikely, sinusoids } from "./model.js";
import { startTextPage } from "./model_page.js";
import { readPage } from "./page.js";
import { openTranslator } from "./translator.js";

const SHOWN = 8; // words of a choice
const THUMBNAIL = 24;
const GROUPS = { "encoder self": "encoder-self", "decoder self": "decoder-self", "decoder cross": "cross" };
const page = readPage();
const { data, part } = page;
const parentElement = part("walk").attachShadow({ mode: "open" });
parentElement.innerHTML = markup;
const now = { key: "", walk: null, before: null, off: [], at: "" };
let translator = null;

/** A head, "GROUP.LAYER.HEAD", as an edit of the walk, ["off", site, head]; and back. */
function editOf(place) {
  const [group, layer, head] = place.split(".");
  const [stack, kind] = Object.entries(GROUPS).find(([, name]) => name === group)[0].split(" ");
  return ["off", `${stack}.${layer}.${kind}`, head];
}

function headOf([, site, head]) {
  const [stack, layer, kind] = site.split(".");
  return `${GROUPS[`${stack} ${kind}`]}.${layer}.${head}`;
}

function send(block) {
  const { key, walk, before, off, at } = now;
  const bytes = encodeWalk(walk, { key, block, edits: off.map(editOf), before, ...data.texts, state: at, about: data });
  showWalk({ data: bytes, parentElement, setStateValue, setTriggerValue });
}

const { writeAddress, run } = startTextPage(page, {
  fresh: { off: [], at: "" },
  read: (valueOf) => ({ at: (valueOf("at") ?? "").slice(0, 80) }),
  entries: ({ at }) => [["at", at]],
  linked: ({ text, at, off }) => [["w-model", "translator"], ["w-text", text], ["walk-at", at], ["walk-edits", off.map((head) => editOf(head).join("_")).join("~")]],
  async load(progress) {
    translator = await openTranslator(data.files, data.sizes, progress);
    return { translator, now };
  },
  async compute({ text }, { off = [], isStopped }) {
    const found = await translator.translate(text, { off, isStopped });
    return found && walkOf(found, data.sizes, translator.nameOf);
  },
  showRecorded: (bytes) => showWalk({ data: bytes, parentElement, setStateValue, setTriggerValue }),
  show(walk, whole, { text, off, at }) {
    Object.assign(now, { key: `${text} ${off}`, walk, before: off.length ? whole : null, off, at });
    const [, stack, block] = /^[a-z-]+\.([01])\.(\d)\./.exec(at) ?? [];
    send([Number(stack ?? 0), Math.min(Number(block ?? 0), data.sizes.layers - 1)]);
  },
});

function setStateValue(name, value) {
  if (name === "place") writeAddress({ at: value });
  else if (now.walk) send(value.split(".").map(Number));
}

function setTriggerValue(name, { edit }) {
  const head = edit && headOf(edit);
  writeAddress({ off: !head ? [] : now.off.includes(head) ? now.off.filter((each) => each !== head) : [...now.off, head] });
  run();
}

/**
 * The walk of a translation, with arrays as {shape, values}.
 *
 * @param found as the translator gives it, with `outputs` of its graphs
 * @param nameOf the readable token of an id
 */
export function walkOf(found, { layers, heads, size }, nameOf) {
  const { encoder, decoder, logits } = found.outputs;
  const [n, m] = [found.sourceTokens.length, found.decoderTokens.length];
  const sides = [
    { name: "encoder", tokens: found.sourceTokens, made: encoder, groups: [["self", "encoder-self", n, (i) => encoder[`encoder.${i}.self.values`].data]] },
    {
      name: "decoder", tokens: found.decoderTokens, made: decoder,
      groups: [["self", "decoder-self", m, (i) => decoder[`decoder.${i}.self.values`].data], ["cross", "cross", n, (i) => encoder[`decoder.${i}.cross.values`].data]],
    },
  ];
  const stacks = sides.map(({ name, tokens, made, groups }) => {
    const rows = tokens.length;
    const state = (key) => {
      const { data } = made[`${name}.${key}`];
      return { shape: [rows, data.length / rows], values: data };
    };
    const blocks = Array.from({ length: layers }, (_, i) => ({
      input: state(i ? `${i - 1}.output` : "embedding"),
      attentions: groups.map(([part, group, columns, valuesOf]) => attentionOf(`${name}.${i}.${part}`, found.calls[group][i], { rows, columns, heads, size }, valuesOf(i), state)),
      neurons: state(`${i}.neurons`), ffn: state(`${i}.ffn`), output: state(`${i}.output`),
    }));
    const { shape, values } = blocks[0].input;
    const positions = sinusoids(...shape);
    return { name, tokens, positions: { shape, values: positions }, embedded: { shape, values: values.map((value, i) => value - positions[i]) }, blocks };
  });
  const given = (found.target.length + 1) >> 1;
  const choices = found.target.map((chosen, row) => choiceOf(logits[row], chosen, nameOf)).slice(given - 1);
  return { stacks, choices, given };
}

function attentionOf(site, call, { rows, columns, heads, size }, values, state) {
  const weights = attentionWeights(call);
  const scores = new Float32Array(weights.length);
  const allowed = new Uint8Array(weights.length).fill(1);
  const outputs = new Float32Array(heads * rows * size);
  const joined = new Float32Array(heads * rows * size);
  for (let head = 0; head < heads; head += 1) {
    for (let row = 0; row < rows; row += 1) {
      const out = (head * rows + row) * size;
      for (let column = 0; column < columns; column += 1) {
        const at = (head * rows + row) * columns + column;
        let product = 0;
        for (let i = 0; i < size; i += 1) {
          product += call.queries[out + i] * call.keys[(head * columns + column) * size + i];
          outputs[out + i] += weights[at] * values[(head * columns + column) * size + i];
        }
        scores[at] = product / Math.sqrt(size);
        if (call.causal && column > row) allowed[at] = 0;
      }
      joined.set(outputs.subarray(out, out + size), (row * heads + head) * size);
    }
  }
  const [ofRows, ofColumns, map] = [[heads, rows, size], [heads, columns, size], [heads, rows, columns]];
  const part = site.split(".").slice(1).join(".");
  return {
    site, crosses: site.endsWith("cross"), heads, rows, columns, masked: allowed.includes(0),
    allowed: { shape: map, values: allowed }, queries: { shape: ofRows, values: call.queries }, keys: { shape: ofColumns, values: call.keys },
    values: { shape: ofColumns, values }, scores: { shape: map, values: scores }, weights: { shape: map, values: weights },
    outputs: { shape: ofRows, values: outputs }, joined: { shape: [rows, heads * size], values: joined }, added: state(`${part}.added`), state: state(`${part}.state`),
  };
}

/** The likeliest words after a token, the chosen one among them, and the probability of any. */
function choiceOf(logits, chosen, nameOf) {
  const sum = logSum(logits);
  const numbers = mostLikely(logits, SHOWN);
  if (!numbers.includes(chosen)) numbers[SHOWN - 1] = chosen;
  const probability = (number) => Math.fround(Math.exp(logits[number] - sum));
  return { numbers, words: numbers.map(nameOf), logits: numbers.map((number) => logits[number]), chosen: nameOf(chosen), probability, number: chosen };
}

/** Whether another walk's choice at a step comes after the same written words. */
function follows(walk, other, step) {
  const written = ({ stacks, given }) => stacks.at(-1).tokens.slice(0, given + step).join("\n");
  return step < Math.min(walk.choices.length, other.choices.length) && written(walk) === written(other);
}

/** The text, and all words written, each with its probability where its choice is recorded. */
const outcomeOf = ({ stacks, choices, given }) => ({
  text: stacks[0].tokens,
  words: [...stacks.at(-1).tokens.slice(1, given).map((word) => [word, null]), ...choices.map(({ chosen, probability, number }) => [chosen, probability(number)])],
});

/**
 * A walk with one of its blocks in full, as bytes for the component.
 *
 * @param about {key, block: [stack, number], edits, before: the walk without edits or null, words, links, language, state, about: the page's measures, patterns and separators}
 */
export function encodeWalk(walk, { key, block, edits, before, words, links, language, state, about }) {
  const sections = makeSections();
  const array = (values, shape, type) => ({ offset: sections.add(values), shape, type });
  const numbers = ({ shape, values }) => array(Float32Array.from(values), shape, "f4");
  const coloured = ({ shape, values }) => {
    const scale = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
    return { ...array(Int8Array.from(values, (value) => Math.round((value * 127) / scale)), shape, "i1"), scale };
  };
  const thumbnail = ({ weights: { shape: [heads, rows, columns], values } }) => {
    const step = Math.ceil(Math.max(rows, columns) / THUMBNAIL);
    const [height, width] = [Math.ceil(rows / step), Math.ceil(columns / step)];
    const made = new Uint8Array(heads * height * width);
    for (let i = 0; i < values.length; i += 1) {
      const [head, row, column] = [Math.floor(i / rows / columns), Math.floor(i / columns) % rows, i % columns];
      const at = (head * height + Math.floor(row / step)) * width + Math.floor(column / step);
      made[at] = Math.max(made[at], Math.round(255 * Math.min(1, values[i])));
    }
    return array(made, [heads, height, width], "u1");
  };
  const opening = ({ weights: { shape: [, rows, columns], values }, heads, crosses }, keys) => {
    const maps = Array.from({ length: heads }, (_, head) => values.subarray(head * rows * columns, (head + 1) * rows * columns));
    return openingHead(about.measures, about.patterns, maps, { rows, columns, onItself: !crosses, separators: separatorsOf(about.separators, keys), image: null });
  };
  const opened = walk.stacks[block[0]].blocks[block[1]];
  const header = {
    key, kind: "translator", block, edits, state, language, words, links, given: walk.given, picture: null, small: 0,
    stacks: walk.stacks.map(({ name, tokens, embedded, positions, blocks }) => ({
      name, tokens, embedded: coloured(embedded), positions: coloured(positions), maps: blocks.map(({ attentions }) => attentions.map(thumbnail)),
      opening: blocks.map(({ attentions }) => attentions.map((call) => opening(call, call.crosses ? walk.stacks[0].tokens : tokens))),
    })),
    input: coloured(opened.input), neurons: coloured(opened.neurons), ffn: coloured(opened.ffn), output: coloured(opened.output),
    attentions: opened.attentions.map(({ allowed, queries, keys, values, scores, weights, outputs, joined, added, state: after, ...call }) => ({
      ...call, key_heads: call.heads, allowed: array(allowed.values, allowed.shape, "u1"), queries: numbers(queries), keys: numbers(keys), values: numbers(values),
      scores: numbers(scores), weights: numbers(weights), outputs: numbers(outputs), joined: coloured(joined), added: coloured(added), state: coloured(after),
    })),
    choices: walk.choices.map((choice, step) => ({
      words: choice.words, logits: choice.logits, chosen: choice.chosen, probabilities: choice.numbers.map(choice.probability),
      before: before && follows(walk, before, step) ? { probabilities: choice.numbers.map(before.choices[step].probability), chosen: before.choices[step].chosen } : null,
    })),
    outcomes: before && { before: outcomeOf(before), now: outcomeOf(walk) },
  };
  return frame(header, sections);
}
