// The search box: heads and layers in order of the weight on a word, and the way to its cells.

import { setHint } from "../shared/elements.js";
import { openHead } from "./actions.js";
import { orderedHeads } from "./measures.js";
import { findKeys, keysName, weightOnWord } from "./search.js";
import { groupOf, openGroup } from "./store.js";
import { onPicture } from "./state.js";
import { zoomTo } from "./zoom.js";

const MOST_PINS = 64;
const SIDE = 48; // tokens on a side of the part of a long map that is opened
const MOST_LAYERS = 3;

/** What was found, and the layers with the most weight on it. */
export function renderSearch(view) {
  const { search, searchNext, searchNote } = view.parts;
  const { words, store } = view;
  search.hidden = onPicture(view);
  setHint(search, words.text("search"));
  if (search !== search.getRootNode().activeElement) search.value = view.search;
  const keys = findKeys(view);
  searchNext.hidden = !keys.length;
  searchNote.hidden = !view.search.trim() || onPicture(view);
  if (searchNote.hidden) return;
  const word = view.search.trim();
  const { layers } = openGroup(view);
  const means = layers.map(({ heads }, layer) => {
    const own = Array.from({ length: heads }, (_, head) => weightOnWord(view, layer, head));
    return [layer, own.includes(null) ? null : own.reduce((a, b) => a + b, 0) / heads];
  });
  const known = means.filter(([, mean]) => mean !== null).sort(([, a], [, b]) => b - a);
  const first = known.slice(0, MOST_LAYERS).map(([layer, mean]) => `${words.text("layer_short", { layer: layers[layer].number })} ${words.number(mean)}`);
  const notes = [];
  if (!keys.length) notes.push(words.text("search_none", { word }));
  else if (!known.length && store.offline) notes.push(words.text("search_not_in_file"));
  else notes.push(words.text("search_found", { word, count: keys.length, layers: first.length ? words.row(first) : "…" }));
  if (known.some(([layer]) => layers[layer].signed)) notes.push(words.text("search_signed"));
  searchNote.textContent = notes.join(" ");
}

/** Open the next head by the weight on the word, at its cells: the keys pinned, and the query that gives them most. */
function jump(view, step) {
  const keys = findKeys(view);
  const heads = orderedHeads(view).filter(([layer, head]) => weightOnWord(view, layer, head) !== null);
  if (!keys.length || !heads.length) return;
  const { found, state } = view;
  found.at = found.at < 0 ? 0 : (found.at + step + heads.length) % heads.length;
  const [layer, head] = heads[found.at];
  const part = view.store.parts.get(keysName(view, layer));
  const count = part.shape[2];
  const of = (row) => part.values.subarray((2 * head + row) * count, (2 * head + row + 1) * count);
  const key = keys.reduce((best, each) => (of(0)[each] > of(0)[best] ? each : best), keys[0]);
  const { query: rows, key: columns } = view.axes;
  const cell = { row: rows.of(of(1)[key]), column: columns.of(key) };
  state.pins = keys.slice(0, MOST_PINS).map((each) => `k${each}`);
  state.display.heads = "one";
  if (!groupOf(view, 0, state.group).exact) zoomTo(view, { row: cell.row - SIDE / 2, column: cell.column - SIDE / 2, rows: SIDE, columns: SIDE });
  view.cursor = { ...cell, by: "query" };
  openHead(view, { group: state.group, layer, head });
}

export function listenToSearch(view) {
  const { search, searchNext } = view.parts;
  view.search = search.value; // typed before the script came
  search.addEventListener("input", () => {
    view.search = search.value;
    view.render();
  });
  search.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Enter") jump(view, event.shiftKey ? -1 : 1);
    if (event.key !== "Escape") return;
    view.search = search.value = "";
    view.render();
  });
  searchNext.addEventListener("click", () => jump(view, 1));
}
