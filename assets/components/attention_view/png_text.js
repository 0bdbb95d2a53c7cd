// Text chunks of PNG files (PNG 3rd edition, 11.3.3.4).

import { crc32 } from "./npz.js";

const AFTER_HEADER = 33; // bytes: the signature and the chunk IHDR

/** A PNG with texts, {keyword: text}; empty ones are left out. */
export async function withTexts(png, texts) {
  const bytes = new Uint8Array(await png.arrayBuffer());
  const chunks = Object.entries(texts).filter(([, text]) => text).map(([keyword, text]) => chunk(keyword, text));
  return new Blob([bytes.subarray(0, AFTER_HEADER), ...chunks, bytes.subarray(AFTER_HEADER)], { type: "image/png" });
}

/** iTXt: keyword, then no compression, no language, no translated keyword, then UTF-8. */
function chunk(keyword, text) {
  const content = new TextEncoder().encode(`iTXt${keyword}\0\0\0\0\0${text.toWellFormed?.() ?? text}`);
  const out = new Uint8Array(content.length + 8);
  const view = new DataView(out.buffer);
  view.setUint32(0, content.length - 4);
  out.set(content, 4);
  view.setUint32(out.length - 4, crc32(content));
  return out;
}
