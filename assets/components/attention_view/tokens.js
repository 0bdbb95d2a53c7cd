// Texts of the view: words from Python as templates, and tokens, which are untrusted text and only become text nodes;
// a side of a map in tokens or words, and two texts matched by edit distance (viz_core/view/responses.py).

import { groupOf } from "./store.js";

/** Templates filled as text or as nodes, and weights written the way the language writes numbers. */
export function makeWords(templates, language) {
  const plain = new Intl.NumberFormat(language, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  const small = new Intl.NumberFormat(language, { minimumSignificantDigits: 2, maximumSignificantDigits: 2 });
  const short = new Intl.NumberFormat(language);

  /** Two decimals, or two digits where that would hide a small weight; a masked weight is a bare 0. */
  function number(value) {
    if (value === 0) return "0";
    if (value >= 0.0995) return plain.format(value);
    if (value >= 0.0001) return small.format(value);
    const exponent = Math.floor(Math.log10(value));
    const superscript = [...String(-exponent)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");
    return `${small.format(value / 10 ** exponent)} × 10⁻${superscript}`;
  }

  /** Powers of ten in words: screen readers pass over superscripts. */
  const spoken = (sentence) =>
    sentence.replace(/ × 10⁻([⁰¹²³⁴⁵⁶⁷⁸⁹]+)/g, (_, digits) => {
      const exponent = `−${[...digits].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹".indexOf(digit)).join("")}`;
      return ` ${templates.power_times} ${templates.power.replace("{exponent}", exponent)}`;
    });

  const plurals = new Intl.PluralRules(language);

  // Words that go by a number, "{count:head|heads}", take their form first; as in ui/text/words.py.
  const inNumber = (template, values) =>
    template.replace(/\{(\w+):([^{}|]*(?:\|[^{}|]*)+)\}/g, (_, key, forms) =>
      forms.split("|").at(plurals.select(Number(values[key])) === "one" ? 0 : -1),
    );

  // One pass over the template: a token that reads "{value}" stays a token.
  const parts = (name, values) => inNumber(templates[name], values).split(/\{(\w+)\}/);

  const text = (name, values = {}) =>
    parts(name, values)
      .map((part, i) => (i % 2 ? values[part] : part))
      .join("");

  /** Replace an element's children by the template, each value in a tag of its own ("b", "bdi"). */
  function into(element, name, values = {}, tag = "b") {
    const nodes = parts(name, values).map((part, i) => {
      if (i % 2 === 0) return document.createTextNode(part);
      const node = document.createElement(tag);
      node.textContent = values[part];
      return node;
    });
    element.replaceChildren(...nodes);
  }

  /** Names in a row, as the language separates them. */
  const row = (names) => names.reduce((before, next) => text("row", { before, next }));

  const signed = (value) => (value > 0 ? `+${number(value)}` : value < 0 ? `−${number(-value)}` : number(0));
  const has = (name) => name in templates;
  const decimal = plain.formatToParts(0.5).find(({ type }) => type === "decimal").value;

  return { text, row, into, has, spoken, decimal, number, signed, plain: (value) => plain.format(value), tick: (value) => short.format(value) };
}

const SHOWN_INSTEAD = { "\n": "⏎", "\r": "⏎", "\t": "⇥" };

/** A token as it can be seen: control characters as signs, nothing-but-space as an open box. */
function visible(token) {
  if (!token.replace(/[\s\u200b-\u200f\u2060\ufeff]/g, "")) return token ? "␣" : "∅";
  // Direction overrides would turn the text around them; the token's own letters keep their direction.
  return token.replace(/[\u0000-\u001f\u007f\u202a-\u202e\u2066-\u2069]/g, (c) => SHOWN_INSTEAD[c] ?? "·");
}

/** {count, name(unit), nameInText(unit), first(unit), of(token)}: units are tokens or words; `nameInText` is the name in a sentence. */
function makeAxis(tokens, numbers, merged, nameInText) {
  if (!merged || !numbers) {
    const name = (unit) => visible(tokens[unit]);
    return { count: tokens.length, name, nameInText: nameInText ?? name, first: (unit) => unit, of: (token) => token };
  }
  const firsts = [];
  const texts = [];
  tokens.forEach((token, i) => {
    const word = numbers[i];
    if (firsts[word] === undefined) firsts[word] = i;
    texts[word] = (texts[word] ?? "") + token.replace(/^##/, "");
  });
  const name = (unit) => visible(texts[unit]);
  return { count: firsts.length, name, nameInText: name, first: (unit) => firsts[unit], of: (token) => numbers[token] };
}

export function axesOf(/** @type {View} */ view, input = 0) {
  const group = groupOf(view, input, view.state.group);
  const merged = view.state.display.unit === "words";
  return {
    query: makeAxis(group.query_tokens, group.query_words, merged, group.image?.queries ? patchNames(view, group, group.query_tokens) : undefined),
    key: makeAxis(group.key_tokens, group.key_words, merged, patchNames(view, group, group.key_tokens)),
  };
}

/** How a patch of a picture is called in a sentence; its token is no more than two numbers. */
function patchNames(/** @type {View} */ view, { image }, tokens) {
  if (!image || image.levels.length) return undefined;
  const { special, grid: [, columns] } = image;
  const place = (patch) => ({ row: Math.floor(patch / columns) + 1, column: (patch % columns) + 1 });
  return (unit) => (unit < special ? visible(tokens[unit]) : view.words.text("patch", place(unit - special)));
}

/** Whether any token of these is only a piece of a word. */
export const hasPieces = ({ query_words: queries, key_words: keys }) =>
  [queries, keys].some((numbers) => numbers && numbers[numbers.length - 1] + 1 < numbers.length);

/** The part of an axis on the screen, as `count` bins of `size` units each. */
export function makeSide(axis, start, length, size, words) {
  const from = Math.floor(start / size) * size;
  const count = Math.ceil((start + length - from) / size);
  const unit = (bin) => from + bin * size;
  const last = (bin) => Math.min(axis.count, unit(bin) + size) - 1;
  const named = (call) => (bin) => (unit(bin) === last(bin) ? call(unit(bin)) : words.text("span", { first: call(unit(bin)), last: call(last(bin)) }));
  const [name, nameInText] = [named(axis.name), named(axis.nameInText)];
  const binOf = (at) => {
    if (at === null || at === undefined) return null;
    const bin = Math.floor((at - from) / size);
    return bin >= 0 && bin < count ? bin : null;
  };
  return { axis, count, size, from, unit, last, name, nameInText, binOf };
}

/**
 * Pairs [i, j] of a cheapest way from one list to another by leaving out, putting in and replacing one item at a time
 * (Wagner and Fischer 1974); null where one of them has none. An item that is kept or replaced comes first.
 */
function matchTokens(first, second) {
  const width = second.length + 1;
  const costs = new Uint32Array((first.length + 1) * width);
  const at = (i, j) => i * width + j;
  for (let i = 0; i <= first.length; i += 1) {
    for (let j = 0; j <= second.length; j += 1) {
      if (!i || !j) costs[at(i, j)] = i + j;
      else costs[at(i, j)] = Math.min(costs[at(i - 1, j)] + 1, costs[at(i, j - 1)] + 1, costs[at(i - 1, j - 1)] + Number(first[i - 1] !== second[j - 1]));
    }
  }
  const pairs = [];
  for (let [i, j] = [first.length, second.length]; i || j; ) {
    const here = costs[at(i, j)];
    if (i && j && here === costs[at(i - 1, j - 1)] + Number(first[i - 1] !== second[j - 1])) pairs.push([(i -= 1), (j -= 1)]);
    else if (i && here === costs[at(i - 1, j)] + 1) pairs.push([(i -= 1), null]);
    else pairs.push([null, (j -= 1)]);
  }
  return pairs.reverse();
}

const namesOf = (side) => Array.from({ length: side.count }, (_, bin) => side.name(bin));

/** The bins of two sides that stand for each other. */
export const matchSides = (first, second) => matchTokens(namesOf(first), namesOf(second));

/** The unit of the first text that a pair is known by; what only the second has comes after all of the first's. */
const unitOf = (first, second, [i, j]) => (i === null ? first.axis.count + second.unit(j) : first.unit(i));

/** Looking units up in bins by a list of their units. */
function indexOf(units) {
  const bins = new Map(units.map((unit, bin) => [unit, bin]));
  return { unit: (bin) => units[bin], last: (bin) => units[bin], binOf: (at) => bins.get(at) ?? null };
}

/** Both sides as one: "cat" where they have the same, "cat | dog" where one stands for the other, "∅" for none. */
export function joinSides(first, second, pairs) {
  const joined = (call) => (bin) => {
    const [i, j] = pairs[bin];
    const [own, other] = [i === null ? "∅" : first[call](i), j === null ? "∅" : second[call](j)];
    return own === other ? own : `${own} | ${other}`;
  };
  const units = pairs.map((pair) => unitOf(first, second, pair));
  return { axis: first.axis, count: pairs.length, size: 1, from: 0, name: joined("name"), nameInText: joined("nameInText"), ...indexOf(units) };
}

/** The second side, known by the first one's units: pointing at a token of one text finds its partner in the other. */
export function asFirst(first, second, pairs) {
  const units = [];
  for (const pair of pairs) if (pair[1] !== null) units[pair[1]] = unitOf(first, second, pair);
  return { ...second, ...indexOf(units) };
}

/**
 * The first map minus the second, over pairs of rows and of columns: {values, alone}. A key that one text lacks has no
 * weight there; of a query that one text lacks there is nothing to compare: its row is 0, and in `alone`.
 */
export function subtractMatched(first, second, rows, columns) {
  const values = new Float32Array(rows.length * columns.length);
  const alone = new Set();
  rows.forEach(([i, k], row) => {
    if (i === null || k === null) {
      alone.add(row);
      return;
    }
    columns.forEach(([j, l], column) => {
      const [own, other] = [j === null ? 0 : first[i * first.columns + j], l === null ? 0 : second[k * second.columns + l]];
      values[row * columns.length + column] = own - other;
    });
  });
  return { values, alone };
}
