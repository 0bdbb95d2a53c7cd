// What is said of a step: its place among all steps, a sentence with its numbers, the arithmetic of a row or a cell, what
// came of it before and after the reader's changes, the buttons that act on it, and the labels of the controls.

import { button, element } from "../shared/elements.js";
import { allowedOf, numbersOf } from "./layout.js";

/** Fill the panel; it is hidden while nothing is changed. */
function showOutcomes(view) {
  const { parts, words, walk } = view;
  const { outcomes } = walk;
  parts.outcomes.hidden = !outcomes;
  if (!outcomes) {
    view.compared = null;
    parts.outcomes.replaceChildren();
    return;
  }
  if (view.compared === walk.key) return;
  view.compared = walk.key;
  const { before, now } = outcomes;
  parts.outcomes.replaceChildren(side(view, words.before, before, now), side(view, words.now, now, before));
  const read = (one) => [...one.text, "→", ...one.words.map(([word]) => word)].join(" ");
  parts.live.textContent = `${words.before}: ${read(before)}. ${words.now}: ${read(now)}.`;
}

/** One side: the text, then each word that was written, with its probability; what differs is marked. */
function side(view, name, own, other) {
  const made = element("p", "", {}, element("strong", "", {}, name));
  own.text.forEach((word, i) => made.append(" ", marked("span", word, word !== other.text[i])));
  if (own.text.length) made.append(" → ");
  own.words.forEach(([word, share], i) => {
    made.append(" ", marked("b", word, word !== other.words[i]?.[0]));
    if (share !== null) made.append(element("small", "", {}, ` ${view.percent(share)}`));
  });
  return made;
}

const marked = (tag, text, changed) => element(tag, changed ? "changed" : "", {}, text);

const MAX_KEYS = 12;

/** Fill the panel for the row or the cell in hand; it is hidden where there is nothing to add up. */
function showSums(view) {
  const { sums } = view.parts;
  const { step, zoom } = view;
  const call = view.walk.attentions[step.attention];
  const cell = zoom === "cell" && ["scores", "mask", "softmax"].includes(step.stage);
  const row = ["row", "cell"].includes(zoom) && ["scores", "mask", "softmax", "sum"].includes(step.stage);
  sums.hidden = !call || !(cell || row);
  if (sums.hidden) return;
  sums.replaceChildren(...(cell ? productOf(view) : rowOf(view)));
}

function rowOf(view) {
  const { layout, step, row, walk } = view;
  const a = step.attention;
  const scores = layout.boxes.get(`scores.${a}`);
  const weights = layout.boxes.get(`weights.${a}`);
  const [score, weight, allowed] = [numbersOf(walk, scores).values, numbersOf(walk, weights).values, allowedOf(walk, scores)];
  const from = row * numbersOf(walk, scores).columns;
  const keys = walk.stacks[scores.keys].tokens.slice(0, scores.columns);
  const all = keys.map((token, j) => ({ token, j, s: score[from + j], w: weight[from + j], open: allowed[from + j] }));
  const open = all.filter((each) => each.open);
  const largest = Math.max(...open.map((each) => each.s));
  const total = open.reduce((sum, each) => sum + Math.exp(each.s - largest), 0);
  const shown = all.length > MAX_KEYS ? [...open].sort((one, other) => other.w - one.w).slice(0, MAX_KEYS) : all;
  const lines = shown.map(({ token, s, w, open: is }) => {
    const exp = is ? view.format(Math.exp(s - largest), 3) : "0";
    return line("td", [token, view.format(s, 2), exp, view.format(w, 3), element("span", "share", { style: `width: ${Math.round(120 * w)}px` })]);
  });
  const head = line("th", [view.words.key, "s", `exp(s − ${view.format(largest, 2)})`, view.words.weight, ""]);
  const sum = view.say("sum-row", { total: view.format(total, 3), count: open.length });
  return [element("table", "", {}, head, ...lines), element("p", "", {}, sum)];
}

function productOf(view) {
  const { layout, step, row, cell, walk } = view;
  const [scores, queries, keys] = ["scores", "queries", "keys"].map((name) => layout.boxes.get(`${name}.${step.attention}`));
  const column = cell?.column ?? 0;
  const [q, k] = [numbersOf(walk, queries), numbersOf(walk, keys)];
  const d = q.columns;
  const terms = Array.from({ length: d }, (_, c) => [q.values[row * d + c], k.values[column * d + c]]);
  const dot = terms.reduce((sum, [one, other]) => sum + one * other, 0);
  const map = numbersOf(walk, scores);
  const score = map.values[row * map.columns + column];
  const products = terms.map(([one, other]) => element("span", "", {}, `${view.format(one, 2)} · ${view.format(other, 2)}`));
  const [query, key] = [walk.stacks[scores.tokens].tokens[row], walk.stacks[scores.keys].tokens[column]];
  const result = view.say("sum-cell", { query, key, dot: view.format(dot, 3), d, score: view.format(score, 3) });
  return [element("div", "terms", {}, ...products), element("p", "", {}, result)];
}

const line = (tag, cells) => element("tr", "", {}, ...cells.map((cell) => element(tag, "", {}, cell)));

/** All steps: {stage, stack, block, attention, round}; `round` counts the words written before. */
export function stepsOf(walk) {
  const steps = [];
  const add = (stage, place = {}) => steps.push({ stage, stack: 0, block: 0, attention: 0, round: 0, ...place });
  walk.stacks.forEach(({ positions, maps, opens }, stack) => {
    for (const stage of ["tokens", "embedding", positions ? "positions" : "rotation"]) add(stage, { stack, block: opens });
    maps.forEach((calls, block) => {
      calls.forEach((_, attention) => {
        const place = { stack, block, attention };
        const masked = walk.stacks.length === 1 ? walk.kind === "writer" : stack === 1 && attention === 0;
        for (const stage of ["projections", "scores", ...(masked ? ["mask"] : []), "softmax", "sum", "heads", "residual"]) {
          add(stage, place);
        }
      });
      add("feed-forward", { stack, block });
    });
  });
  if (walk.small) { // one block has come with it, and no more will
    const [stack, block] = walk.block;
    const own = steps.filter((step) => step.stack === stack && step.block === block);
    return [...own, ...["logits", "choice"].map((stage) => ({ stage, stack, block, attention: 0, round: 0 }))];
  }
  const stack = walk.stacks.length - 1;
  const block = walk.stacks[stack].maps.length - 1;
  walk.choices.forEach((_, round) => {
    if (round) add("again", { stack, block, round });
    add("logits", { stack, block, round });
    add("choice", { stack, block, round });
  });
  return steps;
}

/** How long a step takes to play, in milliseconds at speed 1: blocks do the same, and pass fast but the one that opens. */
export function duration({ stage, block, round }, opens) {
  const full = { tokens: 1400, "feed-forward": 2200, scores: 3600, softmax: 3200, sum: 3200, again: 2600 }[stage] ?? 2400;
  return block !== opens && round === 0 && !["logits", "choice"].includes(stage) ? full / 5 : full;
}

/** The step of a stage in a block, or the closest there is. */
export function findStep(steps, wanted) {
  const same = (step, names) => names.every((name) => step[name] === wanted[name]);
  for (const names of [["stage", "stack", "block", "attention", "round"], ["stage", "stack", "block"], ["stage", "stack"], ["stage"]]) {
    const found = steps.findIndex((step) => same(step, names));
    if (found >= 0) return found;
  }
  return 0;
}

/** The stages that have a button: those of the block that is open, in order, each once. */
function chipsOf(steps, { stack, block, attention }) {
  const last = Math.max(...steps.map((step) => step.stack));
  const of = (step) => {
    if (["tokens", "embedding", "positions", "rotation"].includes(step.stage)) return step.stack === stack;
    if (["logits", "choice"].includes(step.stage)) return step.round === 0 && step.stack === last;
    return step.round === 0 && step.stack === stack && step.block === block && (step.stage === "feed-forward" || step.attention === attention);
  };
  return steps.map((step, i) => [step, i]).filter(([step]) => of(step));
}

/** The head that this step's attention opens on, and its pattern or null. */
export const openingOf = ({ walk, step: { stack, block, attention } }) => walk.stacks[stack].opening[block][attention] ?? [0, null];

export function showWords(view) {
  const { parts, step, steps, index, words, walk } = view;
  parts.play.textContent = view.playing ? words.pause : words.play;
  parts.speed.textContent = `${view.format(view.speed, 1)}×`;
  parts.speed.setAttribute("aria-label", `${words.speed} ${parts.speed.textContent}`);
  const blocks = walk.stacks[step.stack].maps.length;
  parts.layer.textContent = view.say("layer-of", { stack: words[walk.stacks[step.stack].name] ?? "", layer: step.block + 1, layers: blocks });
  const heads = walk.attentions[Math.min(step.attention, walk.attentions.length - 1)].heads;
  const [opening, pattern] = openingOf(view);
  const named = pattern && opening === view.head ? ` · ${words[`pattern_${pattern}`] ?? words[`measure_${pattern}`]}` : "";
  parts.head.textContent = view.say("head-of", { head: view.head + 1, heads }) + named;
  parts.zoom.textContent = words[`zoom-${view.zoom}`];
  Object.assign(parts.time, { max: steps.length - 1, value: index });
  parts.time.setAttribute("aria-valuetext", words[`stage-${step.stage}`]);
  showChips(view);
  const values = valuesOf(view);
  const { crosses, site } = walk.attentions[step.attention] ?? {};
  const isOff = walk.edits.some(([name, where, head]) => name === "off" && where === site && Number(head) === view.head);
  const before = walk.choices[step.round]?.before;
  let stage = crosses && words[`say-cross-${step.stage}`] ? `cross-${step.stage}` : step.stage;
  if (isOff && ["softmax", "sum"].includes(stage)) stage = "off";
  if (stage === "choice" && before) stage = before.chosen === values.word ? "choice-kept" : "choice-changed";
  const sentence = view.say(`say-${stage}`, values);
  const title = view.say("lead", { name: words[`stage-${step.stage}`] });
  const space = title.endsWith(".") ? " " : ""; // none after full-width punctuation
  parts.say.replaceChildren(element("strong", "", {}, title), space, sentence, " ");
  const link = walk.links[step.stage];
  if (link) parts.say.append(element("a", "", { href: link[0], target: "_self" }, `${link[1]} →`));
  if (!view.playing && view.announced !== sentence) parts.live.textContent = sentence;
  view.announced = sentence;
  showActs(view);
  showOutcomes(view);
  showSums(view);
  parts.stage.setAttribute("aria-label", view.say("named", { name: words.title, text: words[`stage-${step.stage}`] }));
  Object.assign(parts.root.dataset, {
    stage: step.stage, stack: step.stack, block: step.block, round: step.round, row: view.row, head: view.head,
    zoom: view.zoom, playing: view.playing, edits: walk.edits.length, changed: Boolean(walk.outcomes),
  });
}

function showChips(view) {
  const { parts, steps, index, words } = view;
  const chips = chipsOf(steps, view.step);
  const key = chips.map(([, i]) => i).join();
  if (parts.chips.dataset.key !== key) {
    parts.chips.dataset.key = key;
    parts.chips.replaceChildren(...chips.map(([{ stage }, i]) => button("", words[`stage-${stage}`], () => view.pauseAt(i), { "data-index": i, "data-stage": stage })));
  }
  for (const chip of parts.chips.children) {
    const at = Number(chip.dataset.index);
    const current = at === index || (view.step.round > 0 && chip.dataset.stage === view.step.stage);
    chip.classList.toggle("done", at < index);
    if (current && !chip.hasAttribute("aria-current")) {
      chip.setAttribute("aria-current", "step");
      const { left, width } = chip.getBoundingClientRect();
      const box = parts.chips.getBoundingClientRect();
      parts.chips.scrollLeft += left + width / 2 - box.left - box.width / 2;
    } else if (!current) chip.removeAttribute("aria-current");
  }
}

function valuesOf(view) {
  const { walk, step, row, head, layout } = view;
  const a = step.attention;
  const call = walk.attentions[a];
  const choice = walk.choices[Math.min(step.round, walk.choices.length - 1)];
  const values = {
    token: walk.stacks[step.stack].tokens[row] ?? "", head: head + 1, heads: call.heads, layer: step.block + 1,
    width: walk.input.shape[1], d: call.queries.shape[2], hidden: walk.neurons.shape[1], tokens: layout.boxes.get(`embedding.${step.stack}`).rows,
    word: choice.chosen, probability: view.percent(choice.probabilities[choice.words.indexOf(choice.chosen)]),
    was: choice.before ? view.percent(choice.before.probabilities[choice.words.indexOf(choice.chosen)]) : "",
    logit: view.format(choice.logits[choice.words.indexOf(choice.chosen)], 2),
  };
  const matrix = layout.boxes.get(`weights.${a}`);
  if (!matrix) return values;
  const map = numbersOf(walk, matrix);
  const weights = map.values.subarray(row * map.columns, row * map.columns + matrix.columns);
  const column = view.cell?.column ?? weights.indexOf(Math.max(...weights));
  const score = numbersOf(walk, layout.boxes.get(`scores.${a}`)).values[row * map.columns + column];
  return { ...values, key: walk.stacks[matrix.keys].tokens[column] ?? "", weight: view.percent(weights[column]), score: view.format(score, 2) };
}

function showActs(view) {
  const { acts } = view.parts;
  const { walk, step, words } = view;
  const call = walk.attentions[step.attention];
  const buttons = [];
  const offer = (text, edit) => buttons.push(button("", text, () => view.edit(edit), { "data-act": edit?.[0] ?? "undo", "data-edit": edit ?? "" }));
  const inAttention = call && ["projections", "scores", "mask", "softmax", "sum", "heads"].includes(step.stage);
  if (inAttention) {
    const edit = ["off", call.site, String(view.head)];
    const is = walk.edits.some((each) => each.join() === edit.join());
    offer(view.say(is ? "switch-on" : "switch-off", { head: view.head + 1, layer: step.block + 1 }), edit);
    if (view.cell && words["hide-key"]) { // a page that cannot hide a key has no words for it
      const hide = ["hide", call.site, String(view.row), String(view.cell.column)];
      const hidden = walk.edits.some((each) => each.join() === hide.join());
      const tokens = { query: walk.stacks[step.stack].tokens[view.row], key: walk.stacks[call.crosses ? 0 : step.stack].tokens[view.cell.column] };
      offer(view.say(hidden ? "show-key" : "hide-key", tokens), hide);
    }
  }
  for (const edit of walk.edits) if (!buttons.some(({ dataset }) => dataset.edit === edit.join())) offer(undoing(view, edit), edit);
  if (walk.outcomes) offer(words.undo, null);
  acts.replaceChildren(...buttons);
}

/** The label of the button that undoes an edit made elsewhere. */
function undoing({ walk, say }, [name, site, one, other]) {
  const [stack, block, kind] = site.split(".");
  if (name === "off") return say("switch-on", { head: Number(one) + 1, layer: Number(block) + 1 });
  const rows = walk.stacks.find((each) => each.name === stack).tokens;
  const keys = kind === "cross" ? walk.stacks[0].tokens : rows;
  return say("show-key", { query: rows[one], key: keys[other] });
}
