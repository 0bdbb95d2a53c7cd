// The store: what Python has sent, by name, and what is still wanted; what is open, pinned and displayed
// (viz_core/view/state.py); and the messages to Python (docs/attention-view.md).

const ANSWER_VERSION = 3;
const MAX_BYTES = 96 * 2 ** 20; // of parts held; the ones longest unused go first
const QUICK_WEIGHTS = 2 ** 26; // what is asked for at once needs no more weights than this, or is one layer

/** A view of which nothing has arrived yet, and nothing is drawn. @returns {View} */
export function makeView(parts) {
  return {
    parts, stages: [], stops: [], store: makeStore(), channel: makeChannel(), stamp: null, render() {}, renderHover() {},
    state: null, cursor: null, hovered: null, slot: "first", several: false, unfolded: false, choosing: false, search: "", found: null, dragged: false,
    width: 0, words: null, theme: null, dark: false, paints: null, axes: null, plots: [], unequal: false, reading: null, readable: false,
    saving: null, speaking: 0, waiting: 0, zooming: 0,
  };
}

/** @returns {Store} */
const makeStore = () => ({ base: null, stamp: null, parts: new Map(), bytes: 0, missing: new Set(), offline: false, folded: null, offers: [], switches: null, derived: new Map() });

/** @returns {Channel} */
const makeChannel = () => ({
  name: Math.random().toString(36).slice(2), turn: 0, sentTurn: 0, known: "", numRequests: 0, requested: "", wanted: new Set(),
  clicks: 0, cell: null, sending: 0, requesting: 0, retrying: 0,
});

/** Take an answer; whether that is done: it may build on a base that is not here. */
export function takeAnswer(/** @type {Store} */ store, /** @type {Answer} */ { header, buffer, start }) {
  if (header.version !== ANSWER_VERSION) throw new Error(`answer version ${header.version}`);
  if (!header.base && header.stamp !== store.stamp) return false;
  if (header.base && header.stamp !== store.stamp) {
    Object.assign(store, makeStore(), { base: { ...store.base, ...header.base }, stamp: header.stamp });
  }
  Object.assign(store, { offline: header.offline, folded: header.folded, offers: header.offers, switches: header.switches && new Set(header.switches) });
  for (const { name, kind, offset, shape, values, ...notes } of header.parts) {
    const count = shape.reduce((product, size) => product * size, 1);
    const Kind = kind === "exact" ? Float32Array : Uint8Array;
    keepPart(store, name, { kind, shape, values: values ?? new Kind(buffer, start + offset, count), ...notes });
  }
  header.missing.forEach((name) => store.missing.add(name));
  return true;
}

function keepPart(/** @type {Store} */ store, name, /** @type {Part} */ part) {
  if (store.parts.has(name)) store.bytes -= store.parts.get(name).values.byteLength;
  store.parts.set(name, part);
  store.bytes += part.values.byteLength;
  for (const [oldest, { values }] of store.parts) {
    if (store.bytes <= MAX_BYTES) break;
    store.parts.delete(oldest);
    store.bytes -= values.byteLength;
  }
}

/** A part that is here, or null; then it is wanted. @returns {Part | null} */
export function partOf(/** @type {View} */ view, name) {
  const { store } = view;
  const part = store.parts.get(name);
  if (part) {
    // Used last, so let go last.
    store.parts.delete(name);
    store.parts.set(name, part);
    return part;
  }
  if (!store.offline && !store.missing.has(name)) view.channel.wanted.add(name);
  return null;
}

export const groupOf = (/** @type {View} */ view, input, id) => view.store.base.groups[input]?.find((group) => group.id === id);

export const openGroup = (/** @type {View} */ view) => groupOf(view, 0, view.state.group);

const pictureName = (input, id, layer) => `picture ${input} ${id} ${layer}`;

/** A layer's thumbnails and measures: {heads, rows, columns, of(head), measures}, or null and wanted if `want`. */
export function pictureOf(/** @type {View} */ view, input, id, layer, want = true) {
  const name = pictureName(input, id, layer);
  const part = want ? partOf(view, name) : view.store.parts.get(name);
  if (!part) return null;
  const [heads, rows, columns] = part.shape;
  const of = (head) => part.values.subarray(head * rows * columns, (head + 1) * rows * columns);
  return { heads, rows, columns, of, measures: part.measures, patterns: part.patterns, most: part.most };
}

export const wantPictures = (/** @type {View} */ view) => wantLayers(view, (layer) => pictureName(0, view.state.group, layer));

/** Ask for a part of each layer of the open group that is not here, the nearest layers first, no more than comes quickly. */
export function wantLayers(/** @type {View} */ view, nameOf) {
  const { layers, query_tokens: queries, key_tokens: keys } = openGroup(view);
  const missing = [...layers.keys()].filter((layer) => !view.store.parts.has(nameOf(layer)));
  missing.sort((a, b) => Math.abs(a - view.state.layer) - Math.abs(b - view.state.layer));
  let room = QUICK_WEIGHTS;
  for (const [i, layer] of missing.entries()) {
    room -= queries.length * keys.length * layers[layer].heads;
    if (i && room < 0) break;
    partOf(view, nameOf(layer));
  }
}

/** The weight that a byte stands for; of signed maps, whose largest is of size `most`, 128 is 0. */
export const weightOf = (byte, most) => (most ? Math.sign(byte - 128) * ((byte - 128) / 127) ** 2 * most : (byte / 255) ** 2);

export const hasHead = (/** @type {Group} */ group, layer, head) => layer >= 0 && head >= 0 && head < (group.layers[layer]?.heads ?? 0);

/** Every head of a group as [layer, head]. @returns {Head[]} */
export const allHeads = (/** @type {Group} */ group) =>
  group.layers.flatMap(({ heads }, layer) => Array.from({ length: heads }, (_, head) => [layer, head]));

// Pause before keyboard moves are sent to Python or spoken, so that holding an arrow key stays quiet.
export const PAUSE = 250;

/** Heads the map combines: [layer, head] each. @returns {Head[]} */
export function chosenHeads(/** @type {View} */ view) {
  const { layer, head, display } = view.state;
  const group = openGroup(view);
  if (display.heads === "one") return [[layer, head]];
  if (display.heads === "all") return allHeads(group);
  if (display.heads === "layer") return allHeads(group).filter(([l]) => l === layer);
  return readHeads(display.heads).filter(([l, h]) => hasHead(group, l, h));
}

/** @returns {any[]} */
const readHeads = (text) => text.split("_").map((head) => head.split(".").map(Number));
export const writeHeads = (heads) => heads.map((head) => head.join(".")).join("_");

/** What the open head is compared with: {input, layer, head}, or null. */
export function comparedWith(/** @type {View} */ view) {
  const { compare, other } = view.state.display;
  if (compare === "off") return null;
  if (other === "none") return null;
  const [input, layer, head] = other.split(".").map(Number);
  if (compare === "difference" && input && isBeside(view)) return null;
  const group = groupOf(view, input, view.state.group);
  return group && hasHead(group, layer, head) ? { input, layer, head } : null;
}

/** Whether the two inputs' maps of the open kind stand beside each other only, for their tokens are cut in other ways. */
export const isBeside = (/** @type {View} */ view) => view.store.base.beside.includes(view.state.group);

/** The part of the map that is shown, in rows and columns of tokens or words; null for all of it. */
export function zoomOf(/** @type {View} */ view) {
  const { zoom } = view.state.display;
  if (zoom === "whole") return null;
  const [row, column, rows, columns] = zoom.split(".").map(Number);
  return { row, column, rows, columns };
}

export const pinsOf = (/** @type {View} */ view) => view.state.pins.map((pin) => ({ axis: pin[0] === "q" ? "query" : "key", index: Number(pin.slice(1)) }));

export const onPicture = (/** @type {View} */ view) => view.state.display.mode === "picture" && Boolean(openGroup(view).image);

/** By which rule a layer weighs keys; "" of signed maps from a file, which does not say. */
export function ruleOf(/** @type {View} */ view, layer) {
  const { rule, signed } = openGroup(view).layers[layer];
  return rule || !signed ? view.words.text(rule || "rule_softmax") : "";
}

export const headName = (/** @type {View} */ view, { group, layer, head }) =>
  view.words.text("head_name", { layer: groupOf(view, 0, group).layers[layer].number, head: head + 1 });

/** Whether there is a second text whose maps come whole, so that heads can be ordered by their change. */
export const canChange = (/** @type {View} */ view) => view.store.base.groups.length > 1 && !isBeside(view) && [0, 1].every((input) => groupOf(view, input, view.state.group)?.exact);

/** Change of a head between the texts, 0 to 1; null until it is here; it is requested. */
export const changeOf = (/** @type {View} */ view, layer, head) => (canChange(view) ? (partOf(view, `change 0 ${view.state.group} ${layer}`)?.changes[head] ?? null) : null);

const RETRY = 8000; // an answer may be lost when two runs of the page overlap

/** Send the state to Python after a pause, if it has changed. */
export function send(/** @type {View} */ view, delay = 0) {
  const { channel } = view;
  channel.turn = channel.sentTurn + 1;
  clearTimeout(channel.sending);
  channel.sending = setTimeout(() => {
    const now = JSON.stringify(view.state);
    if (now === channel.known) {
      channel.turn = channel.sentTurn;
      return;
    }
    channel.known = now;
    channel.sentTurn = channel.turn;
    sendMessage(view);
  }, delay);
}

/** Request parts that are on the screen and have not arrived; repeated after a while, as answers may get lost. */
export function requestMissing(/** @type {View} */ view) {
  const { channel } = view;
  const wants = [...channel.wanted];
  clearTimeout(channel.retrying);
  clearTimeout(channel.requesting);
  if (!wants.length) {
    channel.requested = ""; // all of it is here: the same part may be requested anew, a second file for example
    return;
  }
  channel.retrying = setTimeout(() => {
    channel.requested = "";
    requestMissing(view);
  }, RETRY);
  if (JSON.stringify(wants) === channel.requested) return;
  channel.requesting = setTimeout(() => sendMessage(view), 20);
}

export function sendMessage(/** @type {View} */ view) {
  const { channel } = view;
  clearTimeout(channel.requesting); // it goes along
  const wants = [...channel.wanted];
  const requested = JSON.stringify(wants);
  if (wants.length && requested !== channel.requested) channel.numRequests += 1;
  channel.requested = requested;
  view.setStateValue?.("view", { turn: channel.sentTurn, id: `${channel.name}.${channel.numRequests}`, have: view.store.stamp, wants, cell: channel.cell, ...view.state });
}
