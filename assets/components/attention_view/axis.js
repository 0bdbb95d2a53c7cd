// One side of a map, in tokens or in the words they are pieces of.

import { groupOf } from "./store.js";
import { visible } from "./words.js";

/** {count, name(unit), first(unit), of(token), tokens}: units are tokens or words. */
function makeAxis(tokens, numbers, merged) {
  if (!merged || !numbers) {
    return { count: tokens.length, name: (unit) => visible(tokens[unit]), first: (unit) => unit, of: (token) => token };
  }
  const firsts = [];
  const texts = [];
  tokens.forEach((token, i) => {
    const word = numbers[i];
    if (firsts[word] === undefined) firsts[word] = i;
    texts[word] = (texts[word] ?? "") + token.replace(/^##/, "");
  });
  return { count: firsts.length, name: (unit) => visible(texts[unit]), first: (unit) => firsts[unit], of: (token) => numbers[token] };
}

/** Queries and keys of an input's open group. */
export function axesOf(view, input = 0) {
  const group = groupOf(view, input, view.state.group);
  const merged = view.state.look.unit === "words";
  return {
    query: makeAxis(group.query_tokens, group.query_words, merged),
    key: makeAxis(group.key_tokens, group.key_words, merged),
  };
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
  const name = (bin) =>
    unit(bin) === last(bin)
      ? axis.name(unit(bin))
      : words.text("span", { first: axis.name(unit(bin)), last: axis.name(last(bin)) });
  const binOf = (at) => {
    if (at === null || at === undefined) return null;
    const bin = Math.floor((at - from) / size);
    return bin >= 0 && bin < count ? bin : null;
  };
  return { axis, count, size, from, unit, last, name, binOf };
}
