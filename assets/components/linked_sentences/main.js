// A sentence and its translation: the word that is pointed at, and the words it attends to, with arcs and numbers.

import { element, fillIn } from "../shared/elements.js";
import { partsOf, readJson, stopWatching, viewComponent, watchWidth } from "../shared/mount.js";

const LEAST = 0.05; // weight of a link that is drawn
const MOST_NAMED = 3; // words in the line below
const LABEL = 20; // px of a number above its word
const GAP = 1.2; // px from a word to the middle between it and the next
const MARK = /^<.+>$/;

function createView(parent) {
  const view = { parts: partsOf(parent), data: null, at: null, words: [] };
  view.parts.root.addEventListener("keydown", (event) => moveBy(view, event));
  watchWidth(view, () => draw(view));
  return view;
}

function receive(view, bytes) {
  const text = new TextDecoder().decode(bytes);
  if (text === view.text) return;
  view.text = text;
  view.data = readJson(bytes);
  view.percent = new Intl.NumberFormat(view.data.language, { style: "percent", maximumFractionDigits: 0 });
  view.words = view.data.lines.map((words, line) => words.map((word, index) => makeWord(view, word, line, index)));
  [view.parts.first, view.parts.second].forEach((part, line) => {
    part.replaceChildren(...view.words[line]);
    part.lang = ["en", "fr"][line];
    part.setAttribute("aria-label", view.data.words[line ? "translation" : "sentence"]);
  });
  select(view, ...mostTelling(view.data));
}

function makeWord(view, word, line, index) {
  const button = element("button", MARK.test(word) ? "word mark" : "word", { type: "button", tabindex: "-1", "aria-pressed": "false" });
  button.append(word, element("small", ""));
  const choose = () => select(view, line, index);
  for (const event of ["pointerenter", "click", "focus"]) button.addEventListener(event, choose);
  return button;
}

/** The written word surest of a word whose order changed: links to and from a neighbour cross. Else the surest one. */
function mostTelling({ lines: [source, target], across: { weights } }) {
  const links = weights.map((row, query) => ({ query, key: row.indexOf(Math.max(...row)), weight: Math.max(...row) }))
    .filter(({ query, key }) => !MARK.test(target[query]) && !MARK.test(source[key]));
  const crossed = links.filter((a) => links.some((b) => (a.query - b.query) * (a.key - b.key) < 0));
  const [surest] = (crossed.length ? crossed : links).sort((a, b) => b.weight - a.weight);
  return [1, surest?.query ?? 0];
}

/** What a word attends to, {line, index, weight}; of a word of the first line also what attends to it. */
function linksOf({ within, across }, line, index) {
  const toFirst = (weights) => weights.map((weight, key) => ({ line: 0, index: key, weight }));
  const all = line ? toFirst(across.weights[index]) : [...(within ? toFirst(within.weights[index]) : []), ...across.weights.map((row, query) => ({ line: 1, index: query, weight: row[index] }))];
  return all.filter(({ weight }) => weight >= LEAST).sort((a, b) => b.weight - a.weight);
}

function select(view, line, index) {
  view.at = [line, index];
  view.links = linksOf(view.data, line, index);
  view.words.flat().forEach((word) => {
    word.setAttribute("aria-pressed", "false");
    word.tabIndex = -1;
    word.lastChild.textContent = "";
    delete word.dataset.lit;
  });
  for (const { line: other, index: place, weight } of view.links) {
    const word = view.words[other][place];
    word.dataset.lit = "";
    word.style.setProperty("--weight", weight);
    word.lastChild.textContent = view.percent.format(weight);
  }
  const chosen = view.words[line][index];
  chosen.setAttribute("aria-pressed", "true");
  chosen.tabIndex = 0;
  view.parts.say.textContent = sentencesOf(view).join(" ");
  draw(view);
}

function sentencesOf({ data, links, at: [line, index], percent }) {
  const { words, lines, within, across } = data;
  const list = new Intl.ListFormat(data.language);
  const name = (other) => list.format(links.filter((link) => link.line === other).slice(0, MOST_NAMED)
    .map(({ index: place, weight }) => fillIn(words.item, { word: lines[other][place], weight: percent.format(weight) })));
  const say = (key, head, others) => (others ? [fillIn(words[key], { word: lines[line][index], others, head: head.name })] : []);
  if (line) return say("writes", across, name(0));
  return [...(within ? say("attends", within, name(0)) : []), ...say("read", across, name(1))];
}

function draw(view) {
  const { links, root } = view.parts;
  if (!view.at) return;
  const frame = root.getBoundingClientRect();
  view.width = root.clientWidth;
  const box = ([line, index]) => {
    const { left, right, top, bottom } = view.words[line][index].getBoundingClientRect();
    const middle = (left + right) / 2 - frame.left;
    return { x: middle, left: left - frame.left, right: right - frame.left, top: top - frame.top, bottom: bottom - frame.top };
  };
  root.dataset.drawn = "";
  const from = box(view.at);
  const all = view.words.flatMap((words, line) => words.map((_, index) => box([line, index])));
  links.replaceChildren(...view.links.map(({ line, index, weight }) => {
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", line === view.at[0] ? arc(from, box([line, index])) : across(from, box([line, index]), all));
    path.setAttribute("stroke-width", 1 + 5 * weight);
    path.setAttribute("opacity", 0.25 + 0.75 * weight);
    return path;
  }));
}

/** Above the line, the higher the farther the words are apart; a loop over the word itself. */
function arc(a, b) {
  const reach = Math.abs(a.x - b.x) || 24;
  const [from, to] = [a.top, b.top - LABEL]; // it ends above the word's number
  const top = Math.min(from, to) - Math.min(52, 14 + reach / 5);
  const [left, right] = a.x === b.x ? [a.x - 8, b.x + 8] : [a.x, b.x];
  return `M${left} ${from} C${left} ${top} ${right} ${top} ${right} ${to}`;
}

/** From a word to one of the other line; where lines are broken, between the words of the rows on its way. */
function across(a, b, words) {
  const [upper, lower] = a.top < b.top ? [a, b] : [b, a];
  let [path, x, y] = [`M${upper.x} ${upper.bottom}`, upper.x, upper.bottom];
  const go = (left, top) => {
    path += ` C${x} ${(y + top) / 2} ${left} ${(y + top) / 2} ${left} ${top}`;
    [x, y] = [left, top];
  };
  const rows = [];
  for (const word of words.filter(({ top, bottom }) => top >= upper.bottom && bottom <= lower.top)) {
    if (rows.length && word.top < rows.at(-1)[0].bottom) rows.at(-1).push(word);
    else rows.push([word]);
  }
  for (const row of rows) {
    const far = (gap) => Math.abs(gap - x) + Math.abs(gap - lower.x);
    const [middle, inside] = [(x + lower.x) / 2, row.map(({ right }) => right + GAP)];
    const gaps = [Math.min(row[0].left - GAP, middle), ...inside, Math.max(inside.at(-1), middle)];
    go(gaps.reduce((best, gap) => (far(gap) < far(best) ? gap : best)), Math.min(...row.map(({ top }) => top)));
    path += ` V${(y = Math.max(...row.map(({ bottom }) => bottom)))}`;
  }
  go(lower.x, lower.top);
  return path;
}

const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

function moveBy(view, event) {
  const step = STEPS[event.key];
  if (!step || !view.at) return;
  event.preventDefault();
  const line = Math.min(1, Math.max(0, view.at[0] + step[0]));
  const last = view.words[line].length - 1;
  view.words[line][Math.min(last, Math.max(0, view.at[1] + step[1]))].focus();
}

export default viewComponent(createView, receive, stopWatching);
