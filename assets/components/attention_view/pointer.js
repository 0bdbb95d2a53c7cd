// What the reader points at and pins: where the two meet, in the map and in words.

/** The cell of the pinned token: {row} or {column}, the other null. */
function pinnedCell(view) {
  if (!view.pin) return { row: null, column: null };
  const { axis, index } = view.pin;
  return axis === "query"
    ? { row: view.cells.queries.binOf(index), column: null }
    : { row: null, column: view.cells.keys.binOf(index) };
}

/** The pair under the pointer; a label alone is paired with what is pinned on the other side. */
function pointedPair(view) {
  if (!view.cursor) return null;
  const pinned = pinnedCell(view);
  const row = view.cursor.row ?? pinned.row;
  const column = view.cursor.column ?? pinned.column;
  return row === null || column === null ? null : { row, column };
}

/** The token whose attention is read on the sentence: the one pointed at, else the pinned one. */
function focusToken(view) {
  if (view.cursor) {
    const { by, row, column } = view.cursor;
    return { axis: by, bin: by === "query" ? row : column };
  }
  if (!view.pin) return null;
  const { row, column } = pinnedCell(view);
  return { axis: view.pin.axis, bin: row ?? column };
}

/** What is pointed at or pinned as [template, values] of a sentence, or null. */
function describePointer(view) {
  const { cells } = view;
  const pair = pointedPair(view);
  const focus = focusToken(view);
  if (pair) return ["looks_at", pairWords(view, pair)];
  if (!focus) return null;
  const best = strongest(cells, focus.axis, focus.bin);
  const axis = focus.axis === "query" ? cells.queries : cells.keys;
  if (best.weight <= 0) {
    return [focus.axis === "query" ? "looks_at_nothing" : "looked_at_by_none", { [focus.axis]: axis.name(focus.bin) }];
  }
  return [focus.axis === "query" ? "looks_most_at" : "looked_at_most_by", pairWords(view, best)];
}

function pairWords(view, { row, column }) {
  const { cells } = view;
  return { query: cells.queries.name(row), key: cells.keys.name(column), value: cells.write(row, column) };
}

/** Outlines, labels and tooltip of the map. */
function renderPointer(view) {
  const { cells, layout, cursor } = view;
  const pinned = pinnedCell(view);
  const marks = (at, pin) => [
    ...(pin === null ? [] : [{ at: pin, strong: true }]),
    ...(at === null || at === undefined || at === pin ? [] : [{ at, strong: false }]),
  ];
  const rows = marks(cursor?.row, pinned.row);
  const columns = marks(cursor?.column, pinned.column);
  drawMarks(view.parts.marks, layout, view.theme, rows, columns);
  placeTip(view, pointedPair(view), cells, layout);
}

/** The tooltip beside its cell, kept inside the map's width. */
function placeTip(view, pair, cells, layout) {
  const { tip, stage } = view.parts;
  tip.hidden = !pair;
  if (!pair) return;
  const names = pairWords(view, pair);
  const words = element("span", "pair");
  view.words.into(words, "pair", names, "bdi");
  const value = element("b", "");
  value.textContent = names.value;
  tip.replaceChildren(words, " ", value);
  const x = layout.left + (pair.column + 0.7) * layout.cellWidth;
  const below = layout.top + (pair.row + 1) * layout.cellHeight + 7;
  const above = layout.top + pair.row * layout.cellHeight - 7 - tip.offsetHeight;
  tip.style.left = `${Math.max(0, Math.min(x, stage.clientWidth - tip.offsetWidth))}px`;
  tip.style.top = `${below + tip.offsetHeight > layout.height + 24 ? above : below}px`;
}

/** Say the opened head and what is looked at to a screen reader, once the reader pauses. */
function announce(view) {
  clearTimeout(view.speaking);
  view.speaking = setTimeout(() => {
    const said = describePointer(view);
    const name = headName(view, view.open);
    view.parts.live.textContent = said
      ? view.words.text("announcement", { name, text: view.words.text(...said) })
      : name;
  }, PATIENCE);
}
