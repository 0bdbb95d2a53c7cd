// What the attention view shows and asks for, answered in the browser: the messages of docs/attention-view.md.

import { NEARBY, attentionWeights, clarityOf, measureLayer, measureMap, measuresOf, patchRows, patternOf, pooled, separatorsOf } from "./attention.js";
import { combineMaps, mergeWords } from "./components/attention_view/cells.js";
import show from "./components/attention_view/main.js";
import markup from "./components/attention_view/view.js";
import { data, language } from "./page.js";

const VERSION = 3;
const MAX_TOKENS = 512; // on a side of a map that is sent whole
const THUMBNAIL = 64;
const MAX_PINS = 64;

/** A kind of maps, as `MapGroup` is in Python: computed layer by layer when someone looks. An image is {pixels, grid, special}. */
export function makeGroup({ id, label, queries, keys, onItself, calls, alignmentErrors = null, image = null, provenance }) {
  const [rows, columns] = [queries, keys].map(({ tokens }) => tokens.length);
  const info = { rows, columns, onItself, separators: separatorsOf(data.separators, keys.tokens), image };
  const computed = calls.map(() => null);
  const weights = (layer) => (computed[layer] ??= attentionWeights(calls[layer]));
  const mapOf = (layer, head) => weights(layer).subarray(head * rows * columns, (head + 1) * rows * columns);
  const describe = () => ({
    id, label, queries_label: queries.label, keys_label: keys.label, query_tokens: queries.tokens, key_tokens: keys.tokens,
    query_words: queries.words ?? null, key_words: keys.words ?? null, measures: measuresOf(data.measures, info, mapOf(0, 0), Boolean(alignmentErrors)),
    exact: Math.max(rows, columns) <= MAX_TOKENS, image: image && { grid: image.grid, special: image.special, queries: true, levels: [] },
    layers: calls.map(({ heads }, layer) => ({ number: layer + 1, heads })), provenance,
  });
  return { id, info, calls, alignmentErrors, words: [queries.words, keys.words], weights, mapOf, describe };
}

/** The answer to one request, {kind, shape, values, ...notes}, or null where there is none. */
function answer(groups, request) {
  const [kind, place, ...rest] = request.split(" ");
  const [id, heads, how, unit] = place.startsWith("0.") ? place.slice(2).split(":") : [rest.shift()];
  const group = groups.find((each) => each.id === id);
  if (!group || place[0] !== "0") return null;
  if (kind === "map" || kind === "measures") return ofMap(group, kind, heads, how, unit);
  if (kind === "image") return group.info.image && { kind: "bytes", ...group.info.image.pixels };
  const [layer, token] = rest;
  if (!group.calls[layer]) return null;
  const maps = Array.from({ length: group.calls[layer].heads }, (_, head) => group.mapOf(Number(layer), head));
  return { picture: thumbnails, token: ofToken, keys: ofKeys }[kind]?.(group, maps, layer, token) ?? null;
}

/** Of each key in every head of a layer its mean weight, and the query that gives it most. */
function ofKeys({ info: { rows, columns } }, maps) {
  const values = maps.flatMap((map) => {
    const ofKey = Array.from({ length: columns }, (_, column) => Array.from({ length: rows }, (__, row) => map[row * columns + column]));
    return [...ofKey.map((weights) => weights.reduce((sum, weight) => sum + weight, 0) / rows), ...ofKey.map((weights) => weights.indexOf(Math.max(...weights)))];
  });
  return { kind: "exact", shape: [maps.length, 2, columns], values: Float32Array.from(values) };
}

/** What a query, "q5", looks at in every head of a layer, or who looks at a key, "k5". */
function ofToken({ info: { rows, columns } }, maps, _layer, token) {
  const index = Number(token.slice(1));
  const values = maps.flatMap((map) => (token[0] === "q" ? [...map.subarray(index * columns, (index + 1) * columns)] : Array.from({ length: rows }, (_, row) => map[row * columns + index])));
  return { kind: "exact", shape: [maps.length, values.length / maps.length], values: Float32Array.from(values) };
}

/** A layer's heads as pictures of bytes, square roots of weights, with their measures. */
function thumbnails({ info, alignmentErrors }, maps, layer) {
  const made = maps.map((map) => pooled(map, info.rows, info.columns, THUMBNAIL));
  const bytes = made.flatMap(({ most }) => Array.from(most, (weight) => Math.round(255 * Math.sqrt(Math.min(1, weight)))));
  const measures = measureLayer(data.measures, maps, info, alignmentErrors, layer);
  return { kind: "root", shape: [maps.length, made[0].height, made[0].width], values: Uint8Array.from(bytes), measures, patterns: measures.map((each) => patternOf(data.measures, data.patterns, each)) };
}

/** Heads combined, of tokens or of the words they are pieces of: the map, or its measures. */
function ofMap({ info, words, mapOf }, kind, heads, how, unit) {
  const maps = heads.split("_").map((head) => mapOf(...head.split(".").map(Number)));
  const numbers = [info.rows, info.columns].map((count, side) => (unit === "words" && words[side]) || Array.from({ length: count }, (_, i) => i));
  const values = unit === "words" ? mergeWords(combineMaps(maps, how), ...numbers) : combineMaps(maps, how);
  const [rows, columns] = numbers.map((each) => each.at(-1) + 1);
  if (kind === "map") return { kind: "exact", shape: [rows, columns], values };
  const separators = [...new Set(info.separators.map((column) => numbers[1][column]))];
  const onItself = info.onItself && rows === columns;
  const measures = measureMap(data.measures, values, { ...info, rows, columns, separators, onItself, rowsSumToOne: how === "mean" || maps.length === 1 });
  return { kind: "bytes", shape: [0], values: new Uint8Array(0), measures };
}

/** An attention view in an element; it tells `onSwitch` the heads that are off, "GROUP.LAYER.HEAD" each, and `onOpen` what `open` takes. */
export function makeView(host, { onSwitch, onOpen }, { display = {}, folded = display }) {
  const first = { ...data.display, ...display };
  const parentElement = host.attachShadow({ mode: "open" }); // the page's styles and the view's stay apart
  parentElement.innerHTML = markup;
  const now = { groups: [], state: null, stamp: 0, off: new Set() };

  const send = (requests, known, message) => {
    const found = requests.map((name) => [name, answer(now.groups, name)]);
    const parts = found.filter(([, part]) => part).map(([name, part]) => ({ name, ...part }));
    const header = {
      version: VERSION, stamp: String(now.stamp), turn: message?.turn ?? 0, message_id: message?.id ?? null, state: now.state, offline: false, folded, offers: [],
      switches: [...now.off], parts, missing: found.filter(([, part]) => !part).map(([name]) => name),
      ...(known ? {} : { base: { language, words: data.viewWords, inputs: ["", ""], beside: [], groups: [now.groups.map((group) => group.describe())] } }),
    };
    show({ data: { header }, parentElement, setStateValue, setTriggerValue });
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
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => now.state && send([], true));

  /** Show maps, with the head, the pinned tokens and the look that an address names as the app's does; what does not fit is left out. */
  const open = (groups, address, off = []) => {
    Object.assign(now, { groups, stamp: now.stamp + 1, off: new Set(off), state: stateOf(groups, address, first) });
    const layers = groups.find(({ id }) => id === now.state.group).calls.map((_, layer) => `picture 0 ${now.state.group} ${layer}`);
    send([...layers, `map 0.${now.state.group}:${now.state.layer}.${now.state.head}:mean:tokens`], false);
  };
  return { open };
}

/** The head of a group that opens first (`MapGroup.clearest` in viz_core/view/map_group.py), or that of the middle layer. */
export function clearestOf({ id, calls, info, mapOf }) {
  const heads = calls.flatMap(({ heads: count }, layer) => Array.from({ length: count }, (_, head) => [layer, head]));
  const clear = heads.map((place) => clarityOf(data.measures, data.patterns, measureMap(data.measures, mapOf(...place), info)));
  const most = Math.max(...clear);
  return [id, ...(most ? heads[clear.indexOf(most)] : [calls.length >> 1, 0])].join(".");
}

/** The patch that spreads most weight over others nearby, to be pinned (`over_picture` in viz_core/view/state.py). */
export function clearestPatch({ info: { columns, image }, mapOf }, place) {
  const [layer, head] = place.split(".").slice(1).map(Number);
  const spread = patchRows(mapOf(layer, head), columns, image).map((row) => row.reduce((sum, [weight, far]) => sum + (far > 0 && far <= NEARBY ? Math.sqrt(weight) : 0), 0));
  return `q${image.special + spread.indexOf(Math.max(...spread))}`;
}

/** The state of a view as `read_link` of ui/widgets/view_link.py reads it. */
function stateOf(groups, { head: place, pin, look }, first) {
  const [group, layer, head] = place.split(".");
  const { info, calls } = groups.find(({ id }) => id === group);
  const count = { q: info.rows, k: info.columns };
  const pins = (pin || "").split(".").filter(Boolean);
  const isPinned = pins.length <= MAX_PINS && pins.every((each) => /^[qk]\d+$/.test(each) && each[0] === pins[0][0] && Number(each.slice(1)) < count[each[0]]);
  const given = (look || "").split("~").map((each) => [each.split("-", 1)[0], each.slice(each.indexOf("-") + 1)]);
  const display = { ...first };
  for (const [name, value] of given) if (Object.hasOwn(data.allowed, name) && new RegExp(`^(?:${data.allowed[name]})$`, "u").test(value)) display[name] = value;
  if (display.mode === "picture" && !info.image) display.mode = "map";
  const chosen = [...display.heads.matchAll(/(\d+)\.(\d+)/g)];
  if (!chosen.every(([, i, j]) => Number(j) < (calls[i]?.heads ?? 0))) display.heads = "one";
  return { group, layer: Number(layer), head: Number(head), pins: isPinned ? pins : [], display };
}
