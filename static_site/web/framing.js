// A header and arrays as one run of bytes, as components read them (viz_core/view/framing.py).

/** Arrays one after the other, each at a multiple of 4; `add` gives the offset of one. */
export function makeSections() {
  const arrays = [];
  let length = 0;
  const add = (values) => {
    const offset = length;
    arrays.push([offset, values]);
    length += Math.ceil(values.byteLength / 4) * 4;
    return offset;
  };
  return { add, arrays, size: () => length };
}

/** Header and sections as bytes. */
export function frame(header, { arrays, size }) {
  const text = new TextEncoder().encode(JSON.stringify(header));
  const start = 4 + Math.ceil(text.length / 4) * 4;
  const bytes = new Uint8Array(start + size()).fill(32, 4, start);
  new DataView(bytes.buffer).setUint32(0, start - 4, true);
  bytes.set(text, 4);
  for (const [offset, { buffer, byteOffset, byteLength }] of arrays) bytes.set(new Uint8Array(buffer, byteOffset, byteLength), start + offset);
  return bytes;
}
