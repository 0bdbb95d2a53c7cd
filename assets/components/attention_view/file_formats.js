// File formats: NPZ (.npy arrays in an uncompressed .zip), text chunks of PNG (PNG 3rd edition, 11.3.3.4), and SVG.

import { escapeXml } from "../shared/elements.js";

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
function crc32(bytes) {
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
    for (const [record, at] of /** @type {[DataView, number][]} */ ([[local, 4], [central, 6]])) {
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

const round = (number) => Math.round(number * 100) / 100;

export class SvgContext {
  constructor() {
    this.shapes = [];
    this.saved = [];
    this.fillStyle = this.strokeStyle = this.font = this.textAlign = this.textBaseline = "";
    this.transform = "";
    this.globalAlpha = 1;
    this.lineWidth = 1;
    this.path = "";
  }

  save() {
    this.saved.push(this.transform);
  }

  restore() {
    this.transform = this.saved.pop() ?? "";
  }

  translate(x, y) {
    this.transform += `translate(${round(x)} ${round(y)})`;
  }

  rotate(angle) {
    this.transform += `rotate(${round((angle * 180) / Math.PI)})`;
  }

  add(tag, attributes, content = "") {
    const all = { ...attributes, transform: this.transform, opacity: this.globalAlpha < 1 ? round(this.globalAlpha) : "" };
    const text = Object.entries(all)
      .filter(([, value]) => value !== "")
      .map(([name, value]) => ` ${name}="${escapeXml(value)}"`)
      .join("");
    this.shapes.push(content ? `<${tag}${text}>${content}</${tag}>` : `<${tag}${text}/>`);
  }

  fillRect(x, y, width, height) {
    this.add("rect", { x: round(x), y: round(y), width: round(width), height: round(height), fill: this.fillStyle });
  }

  strokeRect(x, y, width, height) {
    this.add("rect", {
      x: round(x), y: round(y), width: round(width), height: round(height),
      fill: "none", stroke: this.strokeStyle, "stroke-width": this.lineWidth,
    });
  }

  fillText(text, x, y) {
    const [, weight, size, family] = this.font.match(/^(bold )?([\d.]+)px (.*)$/);
    this.add(
      "text",
      {
        // Not every reader of SVG knows other baselines: half of the letters' height is added instead.
        x: round(x), y: round(y + (this.textBaseline === "middle" ? 0.35 * Number(size) : 0)), fill: this.fillStyle, "font-size": size, "font-family": family,
        "font-weight": weight ? "bold" : "",
        "text-anchor": { right: "end", center: "middle" }[this.textAlign] ?? "start",
      },
      escapeXml(text),
    );
  }

  beginPath() {
    this.path = "";
  }

  moveTo(x, y) {
    this.path += `M${round(x)} ${round(y)}`;
  }

  lineTo(x, y) {
    this.path += `L${round(x)} ${round(y)}`;
  }

  /** A whole circle, whatever the angles. */
  arc(x, y, radius) {
    this.path += `M${round(x - radius)} ${round(y)}a${round(radius)} ${round(radius)} 0 1 0 ${round(2 * radius)} 0a${round(radius)} ${round(radius)} 0 1 0 ${round(-2 * radius)} 0`;
  }

  fill() {
    this.add("path", { d: this.path, fill: this.fillStyle });
  }

  bezierCurveTo(...points) {
    this.path += `C${points.map(round).join(" ")}`;
  }

  stroke() {
    this.add("path", { d: this.path, fill: "none", stroke: this.strokeStyle, "stroke-width": round(this.lineWidth) });
  }

  drawImage(canvas, x, y, width, height) {
    this.add("image", {
      x: round(x), y: round(y), width: round(width), height: round(height),
      href: canvas.toDataURL("image/png"), preserveAspectRatio: "none", style: "image-rendering: pixelated",
    });
  }

  /** The whole picture, and what it is: for who cannot see it, and wherever it goes. */
  document(width, height, { title, lines, link }) {
    const metadata = { "dc:title": title, "dc:description": lines.join("\n"), "dc:source": link, "dc:creator": "Attention Atlas" };
    const elements = Object.entries(metadata).filter(([, text]) => text).map(([name, text]) => `<${name}>${escapeXml(text)}</${name}>`);
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
      `<title>${escapeXml(title)}</title>`,
      `<desc>${escapeXml([...lines, link].join("\n"))}</desc>`,
      `<metadata><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:dc="http://purl.org/dc/elements/1.1/">`,
      `<rdf:Description rdf:about="">${elements.join("")}</rdf:Description></rdf:RDF></metadata>`,
      ...this.shapes,
      "</svg>\n",
    ].join("\n");
  }
}
