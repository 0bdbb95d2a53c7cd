// NPZ files: .npy arrays in an uncompressed .zip.

/** An array as the bytes of a .npy file (format 1.0). */
function npy(descr, shape, bytes) {
  const tuple = shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`;
  const text = `{'descr': '${descr}', 'fortran_order': False, 'shape': ${tuple}, }`;
  const head = text + " ".repeat((64 - ((10 + text.length + 1) % 64)) % 64) + "\n";
  const out = new Uint8Array(10 + head.length + bytes.byteLength);
  out.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, head.length & 255, head.length >> 8]);
  out.set(new TextEncoder().encode(head), 10);
  out.set(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength), 10 + head.length);
  return out;
}

export const npyFloats = (values, shape) => npy("<f4", shape, values);

export const npyNumbers = (values) => npy("<i4", [values.length], Int32Array.from(values));

/** Texts as a NumPy array of unicode, each padded to the longest. */
export function npyTexts(texts) {
  // Half a surrogate pair is no character; NumPy would refuse the file.
  const letters = texts.map((text) => Array.from(text, (c) => (/^[\ud800-\udfff]$/.test(c) ? 0xfffd : c.codePointAt(0))));
  const longest = Math.max(1, ...letters.map((each) => each.length));
  const codes = new Uint32Array(texts.length * longest);
  letters.forEach((each, i) => codes.set(each, i * longest));
  return npy(`<U${longest}`, [texts.length], codes);
}

const CRC = Uint32Array.from({ length: 256 }, (_, i) => {
  let crc = i;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});

/** The checksum of ZIP and PNG alike. */
export function crc32(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = CRC[(crc ^ byte) & 255] ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

/** Files {name: bytes} as an uncompressed zip archive. */
export function zip(files) {
  const parts = [];
  const directory = [];
  let offset = 0;
  for (const [name, bytes] of Object.entries(files)) {
    const title = new TextEncoder().encode(name);
    const fields = [20, 0x800, 0, 0, 0x21]; // version, UTF-8 names, stored, 1 January 1980
    const local = new DataView(new ArrayBuffer(30));
    const central = new DataView(new ArrayBuffer(46));
    local.setUint32(0, 0x04034b50, true);
    central.setUint32(0, 0x02014b50, true);
    central.setUint16(4, 20, true);
    for (const [record, at] of [[local, 4], [central, 6]]) {
      fields.forEach((field, i) => record.setUint16(at + 2 * i, field, true));
      record.setUint32(at + 10, crc32(bytes), true);
      record.setUint32(at + 14, bytes.length, true);
      record.setUint32(at + 18, bytes.length, true);
      record.setUint16(at + 22, title.length, true);
    }
    central.setUint32(42, offset, true);
    parts.push(local.buffer, title, bytes);
    directory.push(central.buffer, title);
    offset += 30 + title.length + bytes.length;
  }
  const size = directory.reduce((sum, part) => sum + part.byteLength, 0);
  const end = new DataView(new ArrayBuffer(22));
  end.setUint32(0, 0x06054b50, true);
  end.setUint16(8, Object.keys(files).length, true);
  end.setUint16(10, Object.keys(files).length, true);
  end.setUint32(12, size, true);
  end.setUint32(16, offset, true);
  return new Blob([...parts, ...directory, end.buffer], { type: "application/zip" });
}
