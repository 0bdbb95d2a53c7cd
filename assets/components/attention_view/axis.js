// One side of a map, in tokens or in the words they are pieces of.

import { groupOf } from "./store.js";
import { visible } from "./words.js";

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

/** Queries and keys of an input's open group. */
export function axesOf(view, input = 0) {
  const group = groupOf(view, input, view.state.group);
  const merged = view.state.display.unit === "words";
  return {
    query: makeAxis(group.query_tokens, group.query_words, merged, patchNames(view, group, group.query_tokens)),
    key: makeAxis(group.key_tokens, group.key_words, merged, patchNames(view, group, group.key_tokens)),
  };
}

/** How a patch of a picture is called in a sentence; its token is no more than two numbers. */
function patchNames(view, { seen }, tokens) {
  if (!seen) return undefined;
  const { special, grid: [, columns] } = seen;
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
