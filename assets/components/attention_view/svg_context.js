// SVG as a canvas context draws it, for what is saved.

import { escapeXml } from "../shared/elements.js";

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
