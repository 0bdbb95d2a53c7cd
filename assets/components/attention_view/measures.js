// Measures of heads and the weight on a word that is searched for, computed in Python (viz_core/maps/head_measures,
// viz_core/view/computed_maps.py): shown, sorted and filtered by.

import { element } from "../shared/elements.js";
import { mapName, openSource } from "./cells.js";
import { allHeads, changeOf, headName, onPicture, openGroup, partOf, pictureOf, ruleOf, wantLayers } from "./store.js";
import { hasPieces } from "./tokens.js";

const plainOf = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().trim();

/** The keys whose word is the one typed, or contains it where none is equal. */
export function findKeys(/** @type {View} */ view) {
  const wanted = plainOf(view.search);
  if (!wanted || onPicture(view)) return [];
  const { key_tokens: tokens, key_words: numbers } = openGroup(view);
  const name = `${view.store.stamp} ${view.state.group} ${wanted}`;
  if (view.found?.name === name) return view.found.keys;
  const wordOf = (i) => (numbers ? numbers[i] : i);
  const words = [];
  tokens.forEach((token, i) => (words[wordOf(i)] = (words[wordOf(i)] ?? "") + (numbers ? token.replace(/^##/, "") : token)));
  const plain = words.map(plainOf);
  const fits = plain.includes(wanted) ? (word) => word === wanted : (word) => word.includes(wanted);
  const keys = tokens.map((_, i) => i).filter((i) => fits(plain[wordOf(i)]));
  view.found = { name, keys, at: -1 };
  return keys;
}

const isSearching = (/** @type {View} */ view) => findKeys(view).length > 0;

export const keysName = (/** @type {View} */ view, layer) => `keys 0 ${view.state.group} ${layer}`;

/** The mean weight on the word that is looked for, by one head; null until it is here. */
export function weightOnWord(/** @type {View} */ view, layer, head) {
  const part = view.store.parts.get(keysName(view, layer));
  if (!part) return null;
  const [, , count] = part.shape;
  return findKeys(view).reduce((sum, key) => sum + part.values[2 * head * count + key], 0);
}

/** Ask for the weights of all layers, the nearest first, no more at once than come quickly. */
export function wantWeights(/** @type {View} */ view) {
  if (isSearching(view)) wantLayers(view, (layer) => keysName(view, layer));
}

export const measuresOf = (/** @type {View} */ view) => openGroup(view).measures.map(({ name }) => name);

const measureNamed = (/** @type {View} */ view, name) => openGroup(view).measures.find((measure) => measure.name === name);

/** A head's measures, or null before they are here. */
const printOf = (/** @type {View} */ view, layer, head) => pictureOf(view, 0, view.state.group, layer, false)?.measures[head] ?? null;

/** One measure of a head, or how much it changes between two texts; null before it is known. */
export const measureOf = (/** @type {View} */ view, layer, head, name) => (name === "search" ? weightOnWord(view, layer, head) : name === "changed" ? changeOf(view, layer, head) : (printOf(view, layer, head)?.[name] ?? null));

/** What orders the grid: a search, or what the reader chose. */
export const sortOf = (/** @type {View} */ view) => (isSearching(view) ? "search" : view.state.display.sort);

/** Heads in the order asked for; where a measure orders them, the largest first and the unmeasured last. */
export function orderedHeads(/** @type {View} */ view) {
  const heads = allHeads(openGroup(view));
  const sort = sortOf(view);
  if (sort === "layer") return heads;
  const value = ([layer, head]) => measureOf(view, layer, head, sort) ?? -1;
  return heads.sort((a, b) => value(b) - value(a));
}

const COMPARE = {
  "<": (a, b) => a < b, ">": (a, b) => a > b, "<=": (a, b) => a <= b, ">=": (a, b) => a >= b, "=": (a, b) => Math.abs(a - b) < 0.005,
};

// Conditions are separated by commas, of any language, or semicolons; a comma between digits is a decimal comma.
const SEPARATOR = /;|、|,(?!\d)|(?<!\d),/;

/** A filter or a name without what input methods change: full-width letters and signs, capitals, the printed minus. */
const plainText = (text) => text.normalize("NFKC").toLowerCase().replace(/−/g, "-");

/**
 * What a filter such as "previous > 0.5, layer < 4" lets through, as a function of [layer, head];
 * null where it cannot be read. Measures go by the beginning of their name, in English or the reader's language.
 */
export function readFilter(/** @type {View} */ view, text) {
  const tests = [];
  for (const part of plainText(text).split(SEPARATOR).filter((each) => each.trim())) {
    const clause = part.replace(",", ".");
    const found = clause.match(/^\s*([^\d<>=]+?)\s*(<=|>=|<|>|=)?\s*(-?(?:\d+\.?\d*|\.\d+))\s*$/);
    if (!found) return null;
    const [, word, sign = "=", number] = found;
    const name = filterNames(view).find(([, ...names]) => names.some((each) => plainText(each).startsWith(word)))?.[0];
    if (!name) return null;
    tests.push(([layer, head]) => {
      const value = { layer: openGroup(view).layers[layer].number, head: head + 1 }[name] ?? printOf(view, layer, head)?.[name];
      return value !== null && value !== undefined && COMPARE[sign](value, Number(number));
    });
  }
  return (head) => tests.every((test) => test(head));
}

/** A filter that lets about half of the heads through, as an example; empty before anything is measured. */
export function filterExample(/** @type {View} */ view) {
  const [name] = measuresOf(view);
  const values = name ? allHeads(openGroup(view)).map((head) => printOf(view, ...head)?.[name]).filter((value) => typeof value === "number") : [];
  values.sort((a, b) => a - b);
  const [below, above] = [values[Math.floor((values.length - 1) / 2)], values[Math.floor(values.length / 2)]];
  return values.length ? view.words.text("filter_hint", { name: measureWord(view, "measure", name), value: view.words.plain((below + above) / 2) }) : "";
}

export const filterNames = (/** @type {View} */ view) => [
  ["layer", "layer", view.words.text("layer")],
  ["head", "head", view.words.text("head")],
  ...measuresOf(view).map((name) => [name, name, measureWord(view, "measure", name)]),
];

/** A word about a measure, "measure" its name or "about" what it says; of a picture its own where it has one. */
export function measureWord(/** @type {View} */ view, kind, name) {
  const own = `${kind}_${name}_picture`;
  return view.words.text(openGroup(view).image && view.words.has(own) ? own : `${kind}_${name}`);
}

function writeMeasure(/** @type {View} */ view, name, value) {
  const number = view.words.number(value);
  const unit = `unit_${measureNamed(view, name).unit}`;
  return view.words.has(unit) ? view.words.text(unit, { value: number }) : number;
}

/** A head of the first input with the word for its pattern, if it has one; "" for several heads. */
export function nameOf(/** @type {View} */ view, { group, heads } = openSource(view)) {
  if (heads.length !== 1) return "";
  const [[layer, head]] = heads;
  const pattern = pictureOf(view, 0, group, layer, false)?.patterns?.[head];
  const name = headName(view, { group, layer, head });
  return pattern ? view.words.text("announcement", { name, text: measureWord(view, view.words.has(`pattern_${pattern}`) ? "pattern" : "measure", pattern) }) : name;
}

/** All measures of a head as lines of text, for a title. */
export function printText(/** @type {View} */ view, layer, head) {
  const print = printOf(view, layer, head);
  if (!print) return "";
  return measuresOf(view).filter((name) => typeof print[name] === "number")
    .map((name) => view.words.text("announcement", { name: measureWord(view, "measure", name), text: writeMeasure(view, name, print[name]) }))
    .join("\n");
}

/** What the panel describes: {name, print, ranked, heads}: the head pointed at in the grid, else the whole of the map that is open. */
function describedMap(/** @type {View} */ view) {
  const { words, state } = view;
  const ofHead = ([layer, head]) => ({ name: headName(view, { group: state.group, layer, head }), print: printOf(view, layer, head), ranked: true, heads: [[layer, head]] });
  if (view.hovered) return ofHead(view.hovered);
  const source = openSource(view);
  const merged = source.unit === "words" && hasPieces(openGroup(view));
  const alone = source.heads.length === 1 && !merged;
  const found = ofHead(source.heads[0]);
  if (!alone) Object.assign(found, { print: printOfMap(view, source), ranked: false, heads: source.heads });
  if (source.heads.length > 1) found.name = words.text(`combined_${source.how}`, { count: source.heads.length });
  if (merged) found.name = words.text("in_words", { name: found.name });
  if (state.display.zoom !== "whole") found.name = words.text("of_whole_map", { name: found.name });
  return found;
}

/**
 * The measures of several heads together, or of words, from Python; null while they are not here, where the map is too
 * long to come whole, and in a file that does not hold them.
 */
const printOfMap = (/** @type {View} */ view, source) => (openGroup(view).exact ? (partOf(view, `measures ${mapName(source)}`)?.measures ?? null) : null);

const noteOf = (/** @type {View} */ view, name) => element("dt", "note", {}, view.words.text(name));

/** The fingerprint of what the panel describes: a bar and a number for each measure, and of a single head its rank. */
export function renderPrint(/** @type {View} */ view) {
  const { prints, printName } = view.parts;
  const { name: title, print, ranked, heads } = describedMap(view);
  const { exact, layers, measures } = openGroup(view);
  const rules = layers.some((layer) => layer.signed || layer.rule) ? [...new Set(heads.map(([layer]) => ruleOf(view, layer)))] : [];
  printName.textContent = [title, ...rules.filter(Boolean)].join(" · ");
  if (!print && (view.store.offline || !(exact || ranked))) {
    prints.replaceChildren(...(ranked || exact ? [] : [noteOf(view, "measures_of_heads")]));
    return;
  }
  const others = ranked ? allHeads(openGroup(view)).map(([l, h]) => printOf(view, l, h)).filter(Boolean) : [];
  const signed = heads.some(([layer]) => layers[layer].signed);
  const known = (name) => typeof print?.[name] === "number";
  // Until Python has answered, lines without numbers take the place, so that the page does not jump.
  const expected = ({ unit, signed: of = false }) => unit !== "accuracy" && of === signed;
  const lines = measures.filter((measure) => (print ? known(measure.name) : expected(measure))).map(({ name }) => name);
  prints.replaceChildren(
    ...lines.map((name) => {
      const line = element("div", "print", { title: measureWord(view, "about", name) });
      const label = element("dt", "", {}, measureWord(view, "measure", name));
      const bar = element("dd", "amount", { "aria-hidden": true });
      const value = element("dd", "value");
      const rank = element("dd", "rank");
      if (known(name)) {
        line.dataset.measure = name;
        bar.style.setProperty("--amount", Math.min(1, print[name] / measureNamed(view, name).maximum));
        value.textContent = writeMeasure(view, name, print[name]);
        const values = others.map((other) => other[name]).filter((value) => typeof value === "number");
        const above = values.filter((value) => value > print[name]).length;
        rank.textContent = ranked ? view.words.text("rank", { rank: above + 1, count: values.length }) : "";
      }
      line.append(label, bar, value, rank);
      return line;
    }),
    ...(signed && measures.length ? [noteOf(view, "measures_signed")] : []),
  );
}
