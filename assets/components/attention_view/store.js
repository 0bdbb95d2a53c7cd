// The browser's side of the protocol in docs/attention-view.md:
// what Python has sent, by name, and what is still wanted.

const ANSWER_VERSION = 3;
const MOST_BYTES = 96 * 2 ** 20; // of parts held; the ones longest unused go first

export function makeStore() {
  return { base: null, stamp: null, parts: new Map(), bytes: 0, missing: new Set(), offline: false, offers: [], along: null, switches: null, derived: new Map() };
}

/** Take an answer; whether that is done: it may build on a base that is not here. */
export function takeAnswer(store, { header, buffer, start }) {
  if (header.version !== ANSWER_VERSION) throw new Error(`answer version ${header.version}`);
  if (!header.base && header.stamp !== store.stamp) return false;
  if (header.base && header.stamp !== store.stamp) {
    Object.assign(store, makeStore(), { base: { ...store.base, ...header.base }, stamp: header.stamp });
  }
  Object.assign(store, { offline: header.offline, offers: header.offers, switches: header.switches && new Set(header.switches) });
  for (const { name, kind, offset, shape, ...notes } of header.parts) {
    const count = shape.reduce((product, size) => product * size, 1);
    const Kind = kind === "exact" ? Float32Array : Uint8Array;
    keepPart(store, name, { kind, shape, values: new Kind(buffer, start + offset, count), ...notes });
  }
  header.missing.forEach((name) => store.missing.add(name));
  return true;
}

function keepPart(store, name, part) {
  if (store.parts.has(name)) store.bytes -= store.parts.get(name).values.byteLength;
  store.parts.set(name, part);
  store.bytes += part.values.byteLength;
  for (const [oldest, { values }] of store.parts) {
    if (store.bytes <= MOST_BYTES) break;
    store.parts.delete(oldest);
    store.bytes -= values.byteLength;
  }
}

/** A part that is here, or null; then it is wanted. */
export function partOf(view, name) {
  const { store } = view;
  const part = store.parts.get(name);
  if (part) {
    // Used last, so let go last.
    store.parts.delete(name);
    store.parts.set(name, part);
    return part;
  }
  if (!store.offline && !store.missing.has(name)) view.wanted.add(name);
  return null;
}

export const groupOf = (view, input, id) => view.store.base.groups[input]?.find((group) => group.id === id);

export const openGroup = (view) => groupOf(view, 0, view.state.group);

/** A layer's thumbnails and measures: {heads, rows, columns, of(head), measures}, or null and wanted if `want`. */
export function pictureOf(view, input, id, layer, want = true) {
  const name = `picture ${input} ${id} ${layer}`;
  const part = want ? partOf(view, name) : view.store.parts.get(name);
  if (!part) return null;
  const [heads, rows, columns] = part.shape;
  const of = (head) => part.values.subarray(head * rows * columns, (head + 1) * rows * columns);
  return { heads, rows, columns, of, measures: part.measures, most: part.most };
}

/** The weight that a byte stands for; of signed maps, whose largest is of size `most`, 128 is 0. */
export const weightOf = (byte, most) => (most ? Math.sign(byte - 128) * ((byte - 128) / 127) ** 2 * most : (byte / 255) ** 2);

/** Whether a group has that layer and head. */
export const hasHead = (group, layer, head) => layer >= 0 && head >= 0 && head < (group.layers[layer]?.heads ?? 0);

/** Every head of a group as [layer, head]. */
export const allHeads = (group) =>
  group.layers.flatMap(({ heads }, layer) => Array.from({ length: heads }, (_, head) => [layer, head]));
