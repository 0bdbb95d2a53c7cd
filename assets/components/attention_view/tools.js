// The controls, each of which shows a part of the state and changes it; and the search box.

import { button, element, setHint } from "../shared/elements.js";
import { openHead, setDisplay, unpin } from "./actions.js";
import { exportAs } from "./export.js";
import { zoomBy, zoomTo } from "./gestures.js";
import { filterExample, findKeys, keysName, measuresOf, measureWord, orderedHeads, weightOnWord } from "./measures.js";
import { allHeads, canChange, chosenHeads, comparedWith, groupOf, headName, isBeside, onPicture, openGroup, PAUSE } from "./store.js";
import { hasPieces } from "./tokens.js";

/** A row of buttons of which one is pressed; rebuilt only for other options, so that focus stays. */
function choose(/** @type {View} */ view, part, options, current, pick) {
  const shape = JSON.stringify([view.store.base.language, options]);
  if (part.dataset.shape !== shape) {
    part.dataset.shape = shape;
    part.replaceChildren(...options.map(([value, text]) => button("option", text, () => pick(value), { "data-value": value })));
  }
  for (const option of part.children) option.setAttribute("aria-pressed", option.dataset.value === current);
}

function chooseDisplay(/** @type {View} */ view, part, name, values) {
  const options = values.map((value) => [value, view.words.text(`${name}_${value}`)]);
  choose(view, part, options, view.state.display[name], (value) => setDisplay(view, { [name]: value }));
}

function selectDisplay(/** @type {View} */ view, part, name, options) {
  const shape = JSON.stringify([view.store.base.language, options]);
  if (part.dataset.shape !== shape) {
    part.dataset.shape = shape;
    part.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
    part.onchange = () => setDisplay(view, { [name]: part.value });
  }
  part.value = view.state.display[name];
}

/** Every label of the markup in the reader's language, once. */
function writeLabels(/** @type {View} */ view) {
  const { root } = view.parts;
  const { language } = view.store.base;
  if (root.dataset.language === language) return;
  root.dataset.language = language;
  root.lang = language;
  for (const node of root.querySelectorAll("[data-word]")) node.textContent = view.words.text(node.dataset.word);
  for (const node of root.querySelectorAll("[data-label]")) {
    const text = view.words.text(node.dataset.label);
    node.setAttribute("aria-label", text);
    if (node.tagName === "BUTTON") node.title = text;
  }
}

const USUAL = { sort: "layer", filter: "", heads: "one", compare: "off", patches: "exact" };

/** Hide what a chapter's question does not need behind "More", while none of it is used. */
function foldTools(/** @type {View} */ view) {
  const { parts, state, store } = view;
  const opening = { ...USUAL, ...store.folded };
  const isUsed = Boolean(view.search) || view.choosing || Object.keys(USUAL).some((name) => state.display[name] !== opening[name]);
  view.unfolded ||= isUsed; // and stays so: what has the focus may be among it
  parts.unfold.hidden = !store.folded || isUsed;
  parts.unfold.setAttribute("aria-expanded", view.unfolded);
  parts.root.dataset.folded = Boolean(store.folded) && !view.unfolded;
}

export function renderTools(/** @type {View} */ view) {
  const { parts, words, state, store } = view;
  const { display } = state;
  writeLabels(view);
  const measures = measuresOf(view).map((name) => [name, measureWord(view, "measure", name)]);
  const changed = canChange(view) ? [["changed", words.text("measure_changed")]] : [];
  selectDisplay(view, parts.sort, "sort", [["layer", words.text("sort_layer")], ...measures, ...changed]);
  foldTools(view);
  setHint(parts.filter, filterExample(view));
  if (parts.filter !== parts.filter.getRootNode().activeElement) parts.filter.value = display.filter;

  const over = onPicture(view);
  chooseDisplay(view, parts.mode, "mode", [...(openGroup(view).image ? ["picture"] : []), "map", "links"]);
  parts.patches.hidden = !over || openGroup(view).image.levels.length > 0;
  chooseDisplay(view, parts.patches, "patches", ["exact", "smooth", "off"]);
  parts.nearer.hidden = parts.farther.hidden = over;
  chooseDisplay(view, parts.scaleChoice, "scale", ["linear", "sqrt", "log"]);
  chooseDisplay(view, parts.palette, "palette", ["viridis", "cividis", "magma", "greys"]);
  parts.unitTool.hidden = !hasPieces(openGroup(view));
  chooseDisplay(view, parts.unit, "unit", ["tokens", "words"]);

  const kind = display.heads === "one" && view.choosing ? "chosen" : /\d/.test(display.heads) ? "chosen" : display.heads;
  const kinds = ["one", "chosen", "layer", "all"].map((value) => [value, words.text(`heads_${value}`)]);
  choose(view, parts.heads, kinds, kind, (value) => {
    view.choosing = value === "chosen";
    setDisplay(view, { heads: value === "chosen" ? "one" : value });
  });
  parts.how.hidden = display.heads === "one" || display.mode === "links" && chosenHeads(view).length <= view.theme.heads.length;
  chooseDisplay(view, parts.how, "how", ["mean", "max"]);

  const beside = isBeside(view) && !display.other.startsWith("0.");
  const ways = ["off", "side", ...(beside ? [] : ["difference"])].map((value) => [value, words.text(`compare_${value}`)]);
  choose(view, parts.compare, ways, display.compare, (value) => compareBy(view, value));
  parts.slotTool.hidden = display.compare === "off";
  choose(view, parts.slot, ["first", "second"].map((value) => [value, words.text(`slot_${value}`)]), view.slot, (value) => {
    view.slot = value;
    view.render();
  });
  parts.input.hidden = display.compare === "off" || store.base.groups.length < 2;
  if (!parts.input.hidden) {
    const inputs = store.base.inputs.map((name, input) => [String(input), name]);
    choose(view, parts.input, inputs, String(comparedWith(view)?.input ?? 0), (input) => {
      setDisplay(view, { other: partnerOf(view, Number(input)) });
    });
  }

  parts.linkTools.hidden = display.mode !== "links";
  const top = display.links[0] === "k";
  choose(view, parts.rule, ["w", "k"].map((value) => [value, words.text(`links_${value}`)]), display.links[0], (value) => {
    setDisplay(view, { links: value === "k" ? "k3" : "w0.1" });
  });
  Object.assign(parts.least, top ? { min: 1, max: 20, step: 1 } : { min: 0, max: 1, step: 0.01 });
  if (parts.least !== parts.least.getRootNode().activeElement || Number(parts.least.value) !== Number(display.links.slice(1))) {
    parts.least.value = display.links.slice(1);
  }
  const least = top ? parts.least.value : words.plain(Number(parts.least.value));
  parts.leastValue.textContent = least;
  parts.least.setAttribute("aria-valuetext", top ? words.text("least_k", { count: least }) : words.text("least_w", { value: least }));

  chooseDisplay(view, parts.fold, "fold", ["mean", "sum"]);
  parts.fold.hidden = !view.several && state.pins.length < 2;
  parts.several.setAttribute("aria-pressed", view.several);
  parts.whole.hidden = over || display.zoom === "whole";
  for (const kind of ["page", "notebook", "link"]) parts[`${kind}Export`].hidden = !store.offers.includes(kind);
  parts.gridPng.hidden = parts.gridSvg.hidden = allHeads(openGroup(view)).length === 1;
  renderLegendOfHeads(view);
}

/** What the open head is compared with at first: the same head of the other input, or the next of its own. */
function partnerOf(/** @type {View} */ view, input) {
  const { layer, head } = view.state;
  if (input) return `${input}.${layer}.${head}`;
  const heads = allHeads(openGroup(view));
  const next = heads[(heads.findIndex(([l, h]) => l === layer && h === head) + 1) % heads.length];
  return `0.${next.join(".")}`;
}

function compareBy(/** @type {View} */ view, compare) {
  const { display } = view.state;
  const changes = { compare };
  if (compare !== "off" && !comparedWith({ ...view, state: { ...view.state, display: { ...display, compare } } })) {
    changes.other = partnerOf(view, view.store.base.groups.length - 1);
  }
  if (compare !== "off" && display.compare === "off") view.slot = "second";
  if (compare === "off") view.slot = "first";
  setDisplay(view, changes);
}

/** Which colour is which head, where links of several are drawn. */
export function renderLegendOfHeads(/** @type {View} */ view) {
  const heads = view.plots[0]?.heads ?? [];
  const shown = view.state.display.mode === "links" ? heads : [];
  view.parts.headLegend.replaceChildren(
    ...shown.map(([layer, head], i) => {
      const name = headName(view, { group: view.state.group, layer, head });
      return element("span", "key-of-head", { style: `--colour: ${view.theme.heads[i]}` }, name);
    }),
  );
}

export function listenToTools(/** @type {View} */ view) {
  const { parts } = view;
  parts.filter.addEventListener("input", () => {
    const text = parts.filter.value.normalize("NFKC").replace(/−/g, "-").replace(/[^\p{L}\p{N}_ .<>=,;、-]/gu, "").slice(0, 40);
    setDisplay(view, { filter: text }, PAUSE);
  });
  parts.filter.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      parts.filter.value = "";
      setDisplay(view, { filter: "" });
    }
    event.stopPropagation();
  });
  parts.least.addEventListener("input", () => {
    const rule = view.state.display.links[0];
    setDisplay(view, { links: `${rule}${Number(parts.least.value)}` }, PAUSE);
  });
  parts.several.addEventListener("click", () => {
    view.several = !view.several;
    view.render();
  });
  parts.unfold.addEventListener("click", () => {
    view.unfolded = !view.unfolded;
    view.render();
  });
  parts.unpin.addEventListener("click", () => unpin(view));
  parts.nearer.addEventListener("click", () => zoomBy(view, 0.5));
  parts.farther.addEventListener("click", () => zoomBy(view, 2));
  parts.whole.addEventListener("click", () => zoomTo(view, null));
  for (const menu of [parts.look, parts.exports]) {
    menu.addEventListener("focusout", (event) => {
      // A click on the sheet itself moves focus to nothing; only a step elsewhere closes it.
      if (event.relatedTarget && !menu.contains(/** @type {Node} */ (event.relatedTarget))) menu.open = false;
    });
  }
  parts.root.addEventListener("pointerdown", (event) => {
    for (const menu of [parts.look, parts.exports]) if (!menu.contains(/** @type {Node} */ (event.target))) menu.open = false;
  });
  for (const item of parts.exports.querySelectorAll("[data-export]")) item.addEventListener("click", () => exportAs(view, item.dataset.export));
}

const MAX_PINS = 64;
const SIDE = 48; // tokens on a side of the part of a long map that is opened
const MAX_LAYERS = 3;

/** What was found, and the layers with the most weight on it. */
export function renderSearch(/** @type {View} */ view) {
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
  const first = known.slice(0, MAX_LAYERS).map(([layer, mean]) => `${words.text("layer_short", { layer: layers[layer].number })} ${words.number(mean)}`);
  const notes = [];
  if (!keys.length) notes.push(words.text("search_none", { word }));
  else if (!known.length && store.offline) notes.push(words.text("search_not_in_file"));
  else notes.push(words.text("search_found", { word, count: keys.length, layers: first.length ? words.row(first) : "…" }));
  if (known.some(([layer]) => layers[layer].signed)) notes.push(words.text("search_signed"));
  searchNote.textContent = notes.join(" ");
}

/** Open the next head by the weight on the word, at its cells: the keys pinned, and the query that gives them most. */
function jump(/** @type {View} */ view, step) {
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
  state.pins = keys.slice(0, MAX_PINS).map((each) => `k${each}`);
  state.display.heads = "one";
  if (!groupOf(view, 0, state.group).exact) zoomTo(view, { row: cell.row - SIDE / 2, column: cell.column - SIDE / 2, rows: SIDE, columns: SIDE });
  view.cursor = { ...cell, by: "query" };
  openHead(view, { group: state.group, layer, head });
}

export function listenToSearch(/** @type {View} */ view) {
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
