// What Python sent: a header, then thumbnails and exact maps at the offsets it names
// (viz_core/figures/attention_payload.py describes the bytes).

const PAYLOAD_VERSION = 1;

function readPayload(bytes) {
  const { header, buffer, start } = readFrame(bytes);
  if (header.version !== PAYLOAD_VERSION) throw new Error(`payload version ${header.version}`);

  const group = (id) => header.groups.find((each) => each.id === id);

  /** A head's thumbnail: {rows, columns, values} with values 0 to 255. */
  function thumbnail({ group: id, layer, head }) {
    const { offset, rows, columns } = group(id).layers[layer].thumbnails;
    const size = rows * columns;
    return { rows, columns, values: new Uint8Array(buffer, start + offset + head * size, size) };
  }

  /** A head's exact weights, or null where Python has not sent them. */
  function exactMap({ group: id, layer, head }) {
    const place = header.maps.find((map) => map.group === id && map.layer === layer && map.head === head);
    if (!place) return null;
    const { offset, rows, columns } = place;
    return { rows, columns, values: new Float32Array(buffer, start + offset, rows * columns) };
  }

  /** Whether these groups have that head. */
  function has({ group: id, layer, head }) {
    const layers = group(id)?.layers ?? [];
    return layer < layers.length && head < layers[layer].heads;
  }

  /** The head `steps` further on, layer after layer, round and round. */
  function neighbour({ group: id, layer, head }, steps) {
    const all = group(id).layers.flatMap((each, l) => Array.from({ length: each.heads }, (_, h) => [l, h]));
    const here = all.findIndex(([l, h]) => l === layer && h === head);
    const [l, h] = all[(here + steps + all.length) % all.length];
    return { group: id, layer: l, head: h };
  }

  return { header, group, thumbnail, exactMap, has, neighbour };
}
