// The page of the walk: one translation through the whole model, played by the app's component, with the numbers of
// viz_core/lab/walk.py, framed as in ui/widgets/walk.py.

import { attend, measureLayer, openingHead, pooled, separatorsOf } from "./attention.js";
import showWalk from "./components/walk/main.js";
import markup from "./components/walk/view.js";
import { groupOf, mostLikely, rowsOf } from "./model.js";
import { startPage } from "./model_page.js";
import { data, part } from "./page.js";
import { openTranslator } from "./translator.js";

const SHOWN = 8; // words of a choice
const THUMBNAIL = 24;
const ARRAYS = ["queries", "keys", "values", "outputs", "joined", "added", "state"]; // of an attention, that the graphs return
const parentElement = part("walk").attachShadow({ mode: "open" });
parentElement.innerHTML = markup;
const now = { key: "", walk: null, before: null, off: [], at: "" };

/** A head, "GROUP.LAYER.HEAD", as an edit of the walk, ["off", "STACK.LAYER.KIND", head]; and back. */
const editOf = (place) => place.replace(/^cross/, "decoder-cross").replace(/(\w+)-(\w+)\.(\d+)\.(\d+)/, "off $1.$3.$2 $4").split(" ");
const headOf = ([, site, head]) => site.replace(/(\w+)\.(\d+)\.(\w+)/, (_, stack, layer, kind) => `${groupOf(stack, kind)}.${layer}.${head}`);

function send(block) {
  const { key, walk, before, off, at } = now;
  const shown = headerOf(walk, { key, block, edits: off.map(editOf), before, ...data.texts, state: at, about: data });
  showWalk({ data: { header: shown }, parentElement, setStateValue, setTriggerValue });
}

const { writeAddress, run } = startPage({
  isSubmitted: true,
  fresh: () => ({ off: [] }),
  read: (valueOf) => ({ at: (valueOf("at") ?? "").slice(0, 80) }),
  entries: ({ at }) => [["at", at]],
  linked: ({ text, at, off }) => [["w-model", "translator"], ["w-text", text], ["walk-at", at], ["walk-edits", off.map((head) => editOf(head).join("_")).join("~")]],
  load: async (progress) => ({ translator: await openTranslator(data.files, progress), now }),
  async compute({ translator }, { text }, { off = [], isStopped }) {
    const found = await translator.translate(text, { off, isStopped });
    return found && walkOf(found, translator.nameOf);
  },
  showRecorded: (bytes) => showWalk({ data: bytes, parentElement, setStateValue, setTriggerValue }),
  show(walk, whole, { text, off, at }) {
    Object.assign(now, { key: `${text} ${off}`, walk, before: off.length ? whole : null, off, at });
    const [, stack, block] = /^[a-z-]+\.([01])\.(\d)\./.exec(at) ?? [];
    send([Number(stack ?? 0), block && Number(block)]);
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

/** The walk of a translation as the translator gives it, with arrays as {shape, values}; `nameOf` gives the readable token of an id. */
export function walkOf({ outputs, calls, target, sourceTokens, decoderTokens }, nameOf) {
  const state = (name) => ({ shape: outputs[name].dims.slice(1), values: outputs[name].data });
  const attentionOf = (site, call) => {
    const arrays = Object.fromEntries(ARRAYS.map((part) => [part, state(`${site}.${part}`)]));
    const { scores, weights } = attend(call);
    const [heads, rows, columns] = [call.heads, arrays.queries.shape[1], arrays.keys.shape[1]];
    const shape = [heads, rows, columns];
    const allowed = Uint8Array.from(weights, (_, i) => Number(!call.causal || i % columns <= Math.floor(i / columns) % rows));
    return {
      site, crosses: site.endsWith("cross"), heads, key_heads: heads, rows, columns, masked: allowed.includes(0), ...arrays,
      allowed: { shape, values: allowed }, scores: { shape, values: scores }, weights: { shape, values: weights },
    };
  };
  const stackOf = (name, tokens, kinds) => {
    const blocks = calls[`${name}-self`].map((_, i) => ({
      input: state(i ? `${name}.${i - 1}.output` : `${name}.embedding`),
      attentions: kinds.map((kind) => attentionOf(`${name}.${i}.${kind}`, calls[groupOf(name, kind)][i])),
      neurons: state(`${name}.${i}.neurons`), ffn: state(`${name}.${i}.ffn`), output: state(`${name}.${i}.output`),
    }));
    return { name, tokens, positions: state(`${name}.positions`), embedded: state(`${name}.embedded`), blocks };
  };
  const stacks = [stackOf("encoder", sourceTokens, ["self"]), stackOf("decoder", decoderTokens, ["self", "cross"])];
  const given = (target.length + 1) >> 1;
  const [logits, logP] = [outputs.logits, outputs.log_p].map(rowsOf);
  const choices = target.map((chosen, row) => choiceOf(logits[row], logP[row], chosen, nameOf)).slice(given - 1);
  return { stacks, choices, given };
}

/** The likeliest words after a token, the chosen one among them, and the probability of any. */
function choiceOf(logits, logP, chosen, nameOf) {
  const numbers = mostLikely(logits, SHOWN);
  if (!numbers.includes(chosen)) numbers[SHOWN - 1] = chosen;
  const probability = (number) => Math.fround(Math.exp(logP[number]));
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

/** What the component reads of a walk, with `block`, [stack, number or none for the one that opens], in full (ui/widgets/walk.py); `before` is the walk without edits or null, `about` the page's data. */
export function headerOf(walk, { before, about, ...shown }) {
  const mapsOf = ({ heads, rows, columns, weights: { values } }) => Array.from({ length: heads }, (_, head) => values.subarray(head * rows * columns, (head + 1) * rows * columns));
  const thumbnail = (call) => {
    const made = mapsOf(call).map((map) => pooled(map, call.rows, call.columns, THUMBNAIL));
    return { shape: [call.heads, made[0].height, made[0].width], values: Uint8Array.from(made.flatMap(({ most }) => [...most]), (weight) => Math.round(255 * Math.min(1, weight))) };
  };
  const openingOf = ({ blocks, tokens }) => {
    const found = blocks.map(({ attentions }, layer) => attentions.map((call) => {
      const separators = separatorsOf(about.separators, call.crosses ? walk.stacks[0].tokens : tokens);
      const info = { rows: call.rows, columns: call.columns, onItself: !call.crosses, separators, image: null };
      return openingHead(about.measures, about.patterns, measureLayer(about.measures, mapsOf(call), info, call.crosses ? about.errors : null, layer));
    }));
    const clear = found.map((heads) => heads.at(-1)[2]);
    const opens = blocks[0].attentions.at(-1).crosses ? Number(about.open.split(".")[1]) : clear.indexOf(Math.max(...clear));
    return { opens, opening: found.map((heads) => heads.map(([head, pattern]) => [head, pattern])) };
  };
  const openings = walk.stacks.map(openingOf);
  const block = [shown.block[0], Math.min(shown.block[1] ?? openings[shown.block[0]].opens, walk.stacks[0].blocks.length - 1)];
  return {
    ...shown, block, kind: "translator", given: walk.given, picture: null, small: 0,
    stacks: walk.stacks.map(({ blocks, ...stack }, i) => ({
      ...stack, maps: blocks.map(({ attentions }) => attentions.map(thumbnail)),
      ...openings[i],
    })),
    ...walk.stacks[block[0]].blocks[block[1]],
    choices: walk.choices.map((choice, step) => ({
      words: choice.words, logits: choice.logits, chosen: choice.chosen, probabilities: choice.numbers.map(choice.probability),
      before: before && follows(walk, before, step) ? { probabilities: choice.numbers.map(before.choices[step].probability), chosen: before.choices[step].chosen } : null,
    })),
    outcomes: before && { before: outcomeOf(before), now: outcomeOf(walk) },
  };
}
