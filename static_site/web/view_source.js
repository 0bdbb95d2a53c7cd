// What the attention view shows and asks for, answered in the browser: the messages of docs/attention-view.md.

import { attentionWeights, measureMap, measuresOf, pooled } from "./attention.js";
import { combineMaps, mergeWords } from "./components/attention_view/cells.js";
import show from "./components/attention_view/main.js";
import { frame, makeSections } from "./files.js";

const VERSION = 3;
const MAX_TOKENS = 512; // on a side of a map that is sent whole
const THUMBNAIL = 64;
const MAX_PINS = 64;
const SEPARATOR = new RegExp(`^(?:${JSON.parse(document.getElementById("data").textContent).separators})$`);

/**
 * A kind of maps, as `MapGroup` is in Python.
 *
 * @param kind {id, label, queriesLabel, keysLabel, queryTokens, keyTokens, queryWords, keyWords, onItself, calls, alignmentErrors, image: {pixels, grid, special}, provenance}
 */
export function makeGroup(kind) {
  const rows = kind.queryTokens.length;
  const columns = kind.keyTokens.length;
  const separators = kind.keyTokens.flatMap((token, i) => (SEPARATOR.test(token) ? [i] : []));
  const info = { rows, columns, onItself: kind.onItself, separators, image: kind.image ?? null };
  const computed = kind.calls.map(() => null);
  /** All maps of a layer, computed when someone looks. */
  const weights = (layer) => (computed[layer] ??= attentionWeights(kind.calls[layer]));
  const mapOf = (layer, head) => weights(layer).subarray(head * rows * columns, (head + 1) * rows * columns);
  return { ...kind, info, weights, mapOf };
}

/** The header's description of a group. */
const describe = ({ calls, info, alignmentErrors, ...group }, measures) => ({
  id: group.id,
  label: group.label,
  queries_label: group.queriesLabel,
  keys_label: group.keysLabel,
  query_tokens: group.queryTokens,
  key_tokens: group.keyTokens,
  query_words: group.queryWords ?? null,
  key_words: group.keyWords ?? null,
  measures: measuresOf(measures, info, group.mapOf(0, 0), Boolean(alignmentErrors)),
  exact: Math.max(info.rows, info.columns) <= MAX_TOKENS,
  image: info.image && { grid: info.image.grid, special: info.image.special },
  layers: calls.map(({ heads }, layer) => ({ number: layer + 1, heads })),
  provenance: group.provenance,
});

/** The answer to one request, {kind, shape, values, ...notes}, or null where there is none. */
function answer(groups, measures, request) {
  const [kind, place, ...rest] = request.split(" ");
  const [id, heads, how, unit] = place.startsWith("0.") ? place.slice(2).split(":") : [rest.shift()];
  const group = groups.find((each) => each.id === id);
  if (!group || place[0] !== "0") return null;
  const { rows, columns } = group.info;
  if (kind === "map" || kind === "measures") return ofMap(group, measures, kind, heads, how, unit);
  if (kind === "image") return group.info.image && { kind: "bytes", ...group.info.image.pixels };
  const layer = Number(rest[0]);
  const call = group.calls[layer];
  if (!call) return null;
  if (kind === "picture") return thumbnails(group, measures, layer);
  if (kind === "token") return ofToken(group, layer, rest[1]);
  if (kind === "keys") {
    const values = new Float32Array(call.heads * 2 * columns);
    for (let head = 0; head < call.heads; head += 1) {
      const map = group.mapOf(layer, head);
      for (let column = 0; column < columns; column += 1) {
        let most = 0;
        for (let row = 0; row < rows; row += 1) {
          const weight = map[row * columns + column];
          values[2 * head * columns + column] += weight / rows;
          if (weight > most) [most, values[(2 * head + 1) * columns + column]] = [weight, row];
        }
      }
    }
    return { kind: "exact", shape: [call.heads, 2, columns], values };
  }
  return null;
}

/** What a query, "q5", looks at in every head of a layer, or who looks at a key, "k5". */
function ofToken(group, layer, token) {
  const { rows, columns } = group.info;
  const index = Number(token.slice(1));
  const length = token[0] === "q" ? columns : rows;
  const { heads } = group.calls[layer];
  const values = new Float32Array(heads * length);
  for (let head = 0; head < heads; head += 1) {
    const map = group.mapOf(layer, head);
    for (let i = 0; i < length; i += 1) values[head * length + i] = token[0] === "q" ? map[index * columns + i] : map[i * columns + index];
  }
  return { kind: "exact", shape: [heads, length], values };
}

function ofMap(group, register, kind, heads, how, unit) {
  const { rows, columns } = group.info;
  const maps = heads.split("_").map((head) => group.mapOf(...head.split(".").map(Number)));
  const combined = combineMaps(maps, how);
  const words = unit === "words";
  const numbers = (given, count) => (words && given) || Array.from({ length: count }, (_, i) => i);
  const [rowWords, columnWords] = [numbers(group.queryWords, rows), numbers(group.keyWords, columns)];
  const values = words ? mergeWords(combined, rowWords, columnWords) : combined;
  const shape = [rowWords.at(-1) + 1, columnWords.at(-1) + 1];
  if (kind === "map") return { kind: "exact", shape, values };
  const separators = [...new Set(group.info.separators.map((column) => columnWords[column]))];
  const info = { ...group.info, rows: shape[0], columns: shape[1], separators, rowsSumToOne: how === "mean" || maps.length === 1 };
  info.onItself &&= shape[0] === shape[1];
  return { kind: "bytes", shape: [0], values: new Uint8Array(0), measures: measureMap(register, values, info) };
}

function thumbnails(group, register, layer) {
  const { rows, columns } = group.info;
  const measures = [];
  const pictures = [];
  let size = null;
  for (let head = 0; head < group.calls[layer].heads; head += 1) {
    const map = group.mapOf(layer, head);
    const [written, read] = group.alignmentErrors?.map((side) => 1 - side[layer][head]) ?? [];
    measures.push({ ...measureMap(register, map, group.info), ...(group.alignmentErrors ? { written, read } : {}) });
    const { height, width, most } = pooled(map, rows, columns, THUMBNAIL);
    size = [height, width];
    pictures.push(Uint8Array.from(most, (weight) => Math.round(255 * Math.sqrt(Math.min(1, weight)))));
  }
  const values = new Uint8Array(pictures.length * size[0] * size[1]);
  pictures.forEach((picture, head) => values.set(picture, head * size[0] * size[1]));
  return { kind: "root", shape: [pictures.length, ...size], values, measures };
}

/**
 * An attention view whose questions are answered here.
 *
 * @param host the element it is drawn in
 * @param markup its HTML and style
 * @param data what Python says of views: {viewWords, measures: [{name, unit, target}], display: {name: value}, allowed: {name: pattern}}
 * @param events {onSwitch: called with the heads that are off, "GROUP.LAYER.HEAD" each; onOpen: with what `open` takes}
 * @param {object} display the options that it begins with, where they differ from `data.display`
 */
export function makeView(host, markup, data, language, { onSwitch, onOpen }, display = {}) {
  const first = { ...data.display, ...display };
  const parentElement = host.attachShadow({ mode: "open" }); // the page's styles and the view's stay apart
  parentElement.innerHTML = markup;
  const now = { groups: [], state: null, stamp: 0, off: new Set() };

  const send = (requests, known, message) => {
    const found = requests.map((name) => [name, answer(now.groups, data.measures, name)]);
    const sections = makeSections();
    const parts = found.filter(([, part]) => part).map(([name, { values, ...part }]) => ({ name, ...part, offset: sections.add(values) }));
    const header = {
      version: VERSION,
      stamp: String(now.stamp),
      turn: message?.turn ?? 0,
      state: now.state,
      offline: false,
      message_id: message?.id ?? null,
      offers: [],
      switches: [...now.off],
      missing: found.filter(([, part]) => !part).map(([name]) => name),
      parts,
      ...(known ? {} : { base: { language, words: data.viewWords, inputs: ["", ""], beside: [], groups: [now.groups.map((group) => describe(group, data.measures))] } }),
    };
    show({ data: frame(header, sections), parentElement, setStateValue, setTriggerValue });
  };
  const setStateValue = (_, { have, wants, turn, id, group, layer, head, pins, display }) => {
    now.state = { group, layer, head, pins, display };
    const changed = Object.entries(display).filter(([name, value]) => name in first && value !== first[name]);
    onOpen({ head: `${group}.${layer}.${head}`, pin: pins.join("."), look: changed.map((each) => each.join("-")).join("~") });
    send(wants, have === String(now.stamp), { turn, id });
  };
  const setTriggerValue = (name, place) => {
    if (name !== "switch") return;
    if (!now.off.delete(place)) now.off.add(place);
    onSwitch([...now.off]);
  };
  const redraw = () => now.state && send([], true);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

  /** Show maps, with the head, the pinned tokens and the look that an address names as the app's does; what does not fit is left out. */
  const open = (groups, address, off = []) => {
    Object.assign(now, { groups, stamp: now.stamp + 1, off: new Set(off), state: stateOf(groups, address, first, data.allowed) });
    const layers = groups.find(({ id }) => id === now.state.group).calls.map((_, layer) => `picture 0 ${now.state.group} ${layer}`);
    send([...layers, `map 0.${now.state.group}:${now.state.layer}.${now.state.head}:mean:tokens`], false);
  };
  return { open };
}

/** The state of a view as `read_link` of ui/widgets/view_link.py reads it. */
function stateOf(groups, { head: place, pin, look }, first, allowed) {
  const [group, layer, head] = place.split(".");
  const { info, calls } = groups.find(({ id }) => id === group);
  const count = { q: info.rows, k: info.columns };
  const pins = (pin || "").split(".").filter(Boolean);
  const isPinned = pins.length <= MAX_PINS && pins.every((each) => /^[qk]\d+$/.test(each) && each[0] === pins[0][0] && Number(each.slice(1)) < count[each[0]]);
  const given = (look || "").split("~").map((each) => [each.split("-", 1)[0], each.slice(each.indexOf("-") + 1)]);
  const display = { ...first };
  for (const [name, value] of given) if (Object.hasOwn(allowed, name) && new RegExp(`^(?:${allowed[name]})$`, "u").test(value)) display[name] = value;
  if (display.mode === "picture" && !info.image) display.mode = "map";
  const chosen = [...display.heads.matchAll(/(\d+)\.(\d+)/g)];
  if (!chosen.every(([, i, j]) => Number(j) < (calls[i]?.heads ?? 0))) display.heads = "one";
  return { group, layer: Number(layer), head: Number(head), pins: isPinned ? pins : [], display };
}
