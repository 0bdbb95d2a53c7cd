// The opened head as rows and columns of cells: exact where Python has sent it, else its thumbnail.

/** One side of a map: `bins` cells over the tokens, usually one each. */
function makeAxis(tokens, bins, words) {
  const binOf = (index) => Math.min(bins - 1, Math.floor((index * bins) / tokens.length));
  const first = (bin) => Math.floor((bin * tokens.length) / bins);
  const last = (bin) => Math.ceil(((bin + 1) * tokens.length) / bins) - 1;
  const name = (bin) => {
    const [from, to] = [visible(tokens[first(bin)]), visible(tokens[last(bin)])];
    return first(bin) === last(bin) ? from : words.text("span", { first: from, last: to });
  };
  return { bins, tokens, binOf, first, name };
}

/**
 * {rows, columns, values, exact, queries, keys, weight(row, column), write(row, column)}.
 * A thumbnail's weights are known to 8 bits; where it is smaller than the map each is the largest of several.
 */
function openCells(payload, view, words) {
  const group = payload.group(view.group);
  const exact = payload.exactMap(view);
  const { rows, columns, values } = exact ?? payload.thumbnail(view);
  const unit = exact ? 1 : 1 / 255;
  const pooled = rows < group.query_tokens.length || columns < group.key_tokens.length;
  const weight = (row, column) => values[row * columns + column] * unit;
  const write = (row, column) => {
    if (exact) return words.number(weight(row, column));
    // A byte was rounded to the nearest: half a step more bounds what it stands for.
    const bound = Math.min(1, (values[row * columns + column] + 0.5) * unit);
    return pooled
      ? words.text("at_most", { value: words.number(bound) })
      : words.text("about", { value: words.number(weight(row, column)) });
  };
  return {
    rows,
    columns,
    values: exact ? values : Float32Array.from(values, (byte) => byte / 255),
    exact: Boolean(exact),
    queries: makeAxis(group.query_tokens, rows, words),
    keys: makeAxis(group.key_tokens, columns, words),
    weight,
    write,
  };
}

/** The strongest cell of a row ("query") or column ("key"): {row, column, weight}. */
function strongest(cells, axis, bin) {
  const length = axis === "query" ? cells.columns : cells.rows;
  let best = { weight: -1 };
  for (let i = 0; i < length; i += 1) {
    const [row, column] = axis === "query" ? [bin, i] : [i, bin];
    const weight = cells.weight(row, column);
    if (weight > best.weight) best = { row, column, weight };
  }
  return best;
}
