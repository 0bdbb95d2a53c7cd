// What is said of a step: a sentence with its numbers, the buttons that act on it, and the labels of the controls.

import { element } from "../shared/elements.js";
import { chipsOf } from "./timeline.js";
import { numbersOf } from "./pixels.js";
import { showOutcomes } from "./outcomes.js";
import { showSums } from "./sums.js";

/** Everything around the picture. */
export function showWords(view) {
  const { parts, step, steps, index, words, walk } = view;
  parts.play.textContent = view.playing ? words.pause : words.play;
  parts.speed.textContent = `${view.format(view.speed, 1)}×`;
  parts.speed.setAttribute("aria-label", `${words.speed} ${parts.speed.textContent}`);
  const blocks = walk.stacks[step.stack].maps.length;
  parts.layer.textContent = view.say("layer-of", { stack: words[walk.stacks[step.stack].name] ?? "", layer: step.block + 1, layers: blocks });
  const heads = walk.attentions[Math.min(step.attention, walk.attentions.length - 1)].heads;
  parts.head.textContent = view.say("head-of", { head: view.head + 1, heads });
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
  const title = document.createElement("strong");
  title.textContent = view.say("lead", { name: words[`stage-${step.stage}`] });
  const space = title.textContent.endsWith(".") ? " " : ""; // none after full-width punctuation
  parts.say.replaceChildren(title, space, sentence, " ");
  const link = walk.links[step.stage];
  if (link) {
    const anchor = element("a", "", { href: link[0], target: "_self" });
    anchor.textContent = `${link[1]} →`;
    parts.say.append(anchor);
  }
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
    parts.chips.replaceChildren(...chips.map(([step, i]) => {
      const chip = element("button", "", { type: "button", "data-index": i, "data-stage": step.stage });
      chip.textContent = words[`stage-${step.stage}`];
      chip.addEventListener("click", () => view.go(i));
      return chip;
    }));
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

/** Names and numbers that sentences may use. */
function valuesOf(view) {
  const { walk, step, row, head, layout } = view;
  const a = step.attention;
  const call = walk.attentions[a];
  const choice = walk.choices[Math.min(step.round, walk.choices.length - 1)];
  const values = {
    token: walk.stacks[step.stack].tokens[row] ?? "", head: head + 1, heads: call.heads, layer: step.block + 1,
    width: walk.input.shape[1], d: call.queries.shape[2], hidden: walk.neurons.shape[1], tokens: walk.stacks[step.stack].tokens.length,
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
  const button = (text, edit) => {
    const made = element("button", "", { type: "button", "data-act": edit === null ? "undo" : edit[0], "data-edit": edit ?? "" });
    made.textContent = text;
    made.addEventListener("click", () => view.edit(edit));
    buttons.push(made);
  };
  const inAttention = call && ["projections", "scores", "mask", "softmax", "sum", "heads"].includes(step.stage);
  if (inAttention) {
    const edit = ["off", call.site, String(view.head)];
    const is = walk.edits.some((each) => each.join() === edit.join());
    button(view.say(is ? "switch-on" : "switch-off", { head: view.head + 1, layer: step.block + 1 }), edit);
    if (view.cell && words["hide-key"]) { // a page that cannot hide a key has no words for it
      const hide = ["hide", call.site, String(view.row), String(view.cell.column)];
      const hidden = walk.edits.some((each) => each.join() === hide.join());
      const tokens = { query: walk.stacks[step.stack].tokens[view.row], key: walk.stacks[call.crosses ? 0 : step.stack].tokens[view.cell.column] };
      button(view.say(hidden ? "show-key" : "hide-key", tokens), hide);
    }
  }
  for (const edit of walk.edits) {
    const made = buttons.some(({ dataset }) => dataset.edit === edit.join());
    if (!made) button(undoing(view, edit), edit);
  }
  if (walk.outcomes) button(words.undo, null);
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
