// Alignment of the tokens of two texts by edit distance (viz_core/view/token_alignment.py).

/**
 * Pairs [i, j] of a cheapest way from one list to another by leaving out, putting in and replacing one item at a time
 * (Wagner and Fischer 1974); null where one of them has none. An item that is kept or replaced comes first.
 */
export function matchTokens(first, second) {
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
