// What Python sent as one run of bytes (viz_core/view/framing.py).

/** The header, and a buffer of our own in which the sections it names begin at `start`. */
export function readFrame(bytes) {
  // A copy: the message it came in may start at an address where no float can.
  const { buffer } = bytes.slice();
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  return { header, buffer, start: 4 + length };
}
