// Choosing tokens by their logits.

/** Let the page draw and answer. */
export const pause = () => new Promise((resolve) => setTimeout(resolve));

/** The place of the largest number, but for those left out. */
export function largest(values, without = []) {
  let best = -1;
  for (let i = 0; i < values.length; i += 1) {
    if (!without.includes(i) && (best < 0 || values[i] > values[best])) best = i;
  }
  return best;
}

function logSum(logits, without = []) {
  const most = logits[largest(logits, without)];
  let total = 0;
  for (let i = 0; i < logits.length; i += 1) if (!without.includes(i)) total += Math.exp(logits[i] - most);
  return most + Math.log(total);
}

/** log p of a token: its logit less log sum exp of all. */
export const logProbability = (logits, id) => logits[id] - logSum(logits);

/** The `count` most likely tokens with their log-probabilities among those that may be written. */
export function mostLikely(logits, without, count) {
  const sum = logSum(logits, without);
  const found = [];
  for (let id = 0; id < logits.length; id += 1) {
    if (without.includes(id) || (found.length === count && logits[id] <= found.at(-1).logit)) continue;
    const place = found.findIndex(({ logit }) => logits[id] > logit);
    found.splice(place < 0 ? found.length : place, 0, { id, logit: logits[id] });
    if (found.length > count) found.pop();
  }
  return found.map(({ id, logit }) => ({ id, logP: Math.fround(logit - sum) }));
}
