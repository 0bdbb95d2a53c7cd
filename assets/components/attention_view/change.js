// How much each head looks elsewhere in the second text than in the first.

import { matchTokens, subtractMatched } from "./matched.js";
import { wholeMap } from "./matrix.js";
import { isBeside } from "./state.js";
import { groupOf } from "./store.js";

/** Whether there is a second text whose maps come whole, so that heads can be ordered by their change. */
export const canChange = (view) => view.store.base.groups.length > 1 && !isBeside(view) && [0, 1].every((input) => groupOf(view, input, view.state.group)?.exact);

/**
 * Share of its attention that a head gives elsewhere in the second text, mean over the queries that both have: half the
 * sum of |w - w'| over the keys of both (total variation), 0 to 1. Null until both maps are here; they are asked for.
 */
export function changeOf(view, layer, head) {
  if (!canChange(view)) return null;
  const { group } = view.state;
  const name = `change ${group} ${layer}.${head}`;
  const { derived } = view.store.changes;
  if (derived.has(name)) return derived.get(name);
  const maps = [0, 1].map((input) => wholeMap(view, { input, group, heads: [[layer, head]], how: "mean", unit: "tokens" }));
  if (maps.includes(null)) return null;
  const pairs = pairsOf(view, group);
  const sized = maps.map((values, input) => Object.assign(values.subarray(), { columns: groupOf(view, input, group).key_tokens.length }));
  const { values, alone } = subtractMatched(...sized, pairs.query, pairs.key);
  const both = pairs.query.length - alone.size;
  const moved = values.reduce((sum, value) => sum + Math.abs(value), 0) / 2;
  derived.set(name, both ? moved / both : null);
  return derived.get(name);
}

/** Which tokens of both texts stand for each other, once for a kind of map. */
function pairsOf(view, group) {
  const { pairs } = view.store.changes;
  if (!pairs.has(group)) {
    const [first, second] = [0, 1].map((input) => groupOf(view, input, group));
    const match = (side) => matchTokens(first[side], second[side]);
    pairs.set(group, { query: match("query_tokens"), key: match("key_tokens") });
  }
  return pairs.get(group);
}
