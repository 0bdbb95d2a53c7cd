// Byte-pair encoding (Sennrich 2016).

/**
 * A function that merges the parts of a piece: always the pair that was learned first, again and again.
 *
 * @param {[string, string][]} merges in the order in which they were learned
 */
export function makeMerge(merges) {
  const ranks = new Map(merges.map(([left, right], rank) => [`${left} ${right}`, rank]));
  return (letters) => {
    const parts = [...letters];
    for (;;) {
      let best = Infinity;
      let at = -1;
      for (let i = 0; i + 1 < parts.length; i += 1) {
        const rank = ranks.get(`${parts[i]} ${parts[i + 1]}`) ?? Infinity;
        if (rank < best) [best, at] = [rank, i];
      }
      if (at < 0) return parts;
      parts.splice(at, 2, parts[at] + parts[at + 1]);
    }
  };
}
