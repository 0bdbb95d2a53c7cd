// Figures of plots or of the whole grid, saved as PNG or SVG, always dark on white: names, captions and layout.

import { shorten, textWidth, wrap } from "../shared/canvas.js";
import { saveFile } from "../shared/elements.js";
import { byteSteps, onCanvas, PRINTED, rasterise } from "./colours.js";
import { SvgContext, withTexts } from "./file_formats.js";
import { paintOverThumbnail } from "./over_picture.js";
import { barOf, paintMarks, paintPlot } from "./plot.js";
import { allHeads, comparedWith, groupOf, headName, onPicture, openGroup, pictureOf, zoomOf } from "./store.js";
import { hasPieces } from "./tokens.js";

const MARGIN = 16;
const HEAD = 46; // over a block: its name, and what queries and keys are
const BAR = { height: 10, width: 180, room: 42 };
const LINE = 15; // of the caption
const NARROWEST = 470;
const MAX_WRITTEN = 400; // signs of a line of the caption: the metadata holds all of it

/**
 * Where everything goes: {width, height, draw(context)}.
 *
 * Blocks are {width, height, title, names: [[text, colour]], bar, draw(context)}, drawn with the origin at their corner.
 */
function layOutFigure({ theme }, blocks, { lines, link }, across = false) {
  let [x, y, width, bottom] = [MARGIN, MARGIN, NARROWEST, 0];
  const places = blocks.map((block) => {
    const place = { x, y: y + HEAD, block };
    const end = place.y + block.height + (block.bar ? BAR.room : 0);
    width = Math.max(width, x + block.width + MARGIN);
    bottom = Math.max(bottom, end);
    if (across) x += block.width + MARGIN;
    else y = end + MARGIN;
    return place;
  });
  const font = `11px ${theme.font}`;
  const caption = [...lines, link].filter(Boolean).flatMap((line) => wrap(line.slice(0, MAX_WRITTEN), width - 2 * MARGIN, font));
  const height = bottom + MARGIN + caption.length * LINE + MARGIN / 2;
  const draw = (context) => {
    context.fillStyle = theme.paper;
    context.fillRect(0, 0, Math.ceil(width), Math.ceil(height));
    for (const { x: left, y: top, block } of places) drawBlock(context, theme, block, left, top);
    caption.forEach((line, i) => write(context, theme, line, MARGIN, bottom + MARGIN + (i + 0.5) * LINE, 11, theme.quiet));
  };
  return { width: Math.ceil(width), height: Math.ceil(height), draw };
}

function drawBlock(context, theme, block, x, y) {
  write(context, theme, shorten(block.title, block.width, (text) => textWidth(text, `bold 15px ${theme.font}`)), x, y - 34, 15, theme.text, "bold ");
  block.names.reduce((at, [text, colour]) => write(context, theme, text, at, y - 14, 12, colour), x);
  context.save();
  context.translate(x, y);
  block.draw(context);
  context.restore();
  if (block.bar) drawBar(context, theme, block.bar, x, y + block.height + 8);
}

/** The scale of the colours, each named weight where its colour is. */
function drawBar(context, theme, { long, css, ticks }, x, y) {
  const steps = 60;
  for (let i = 0; i < steps; i += 1) {
    context.fillStyle = css(i / (steps - 1));
    context.fillRect(x + (i * BAR.width) / steps, y, BAR.width / steps + (i < steps - 1 ? 0.5 : 0), BAR.height);
  }
  context.strokeStyle = theme.quiet;
  context.lineWidth = 0.5;
  context.strokeRect(x, y, BAR.width, BAR.height);
  for (const { at, text } of ticks) write(context, theme, text, x + at * BAR.width, y + BAR.height + 9, 10, theme.quiet, "", "center");
  write(context, theme, long, x + BAR.width + 14, y + BAR.height / 2, 11, theme.quiet);
}

/** Write a line; where the next may begin. */
function write(context, theme, text, x, y, size, colour, bold = "", align = "left") {
  context.textAlign = align;
  context.textBaseline = "middle";
  context.direction = "ltr";
  context.font = `${bold}${size}px ${theme.font}`;
  context.fillStyle = colour;
  context.fillText(text, x, y);
  return x + textWidth(text, context.font) + 18;
}

const MAX_NAMED = 12; // heads

/** "attention-cross-mean-of-24-heads-words": two views that differ have two names. */
export function stemOf(/** @type {View} */ view) {
  const { group, display } = view.state;
  const { text } = view.words;
  const parts = [text("stem"), group, headsPart(view, view.plots[0].source)];
  const other = comparedWith(view);
  if (other) {
    const { number } = groupOf(view, other.input, group).layers[other.layer];
    const name = text("stem_head", { layer: number, head: other.head + 1 });
    parts.push(text(display.compare === "side" ? "stem_beside" : "stem_minus", { name }));
    if (other.input) parts.push(text("stem_second"));
  }
  if (display.unit === "words" && hasPieces(openGroup(view))) parts.push(text("stem_words"));
  const zoom = zoomOf(view);
  if (zoom && display.mode !== "picture") {
    const { row, column, rows, columns } = zoom;
    parts.push(text("stem_zoom", { row: row + 1, column: column + 1, rows, columns }));
  }
  return parts.join("-");
}

export const fileName = (/** @type {View} */ view, ending) => `${stemOf(view)}.${ending}`;

const gridName = (/** @type {View} */ view, ending) => `${view.words.text("stem")}-${view.state.group}-${view.words.text("stem_all")}.${ending}`;

function headsPart(/** @type {View} */ view, { heads, how }) {
  const group = openGroup(view);
  const { text } = view.words;
  const number = (layer) => group.layers[layer].number;
  if (heads.length === 1) return text("stem_head", { layer: number(heads[0][0]), head: heads[0][1] + 1 });
  const rule = text(how === "max" ? "stem_max" : "stem_mean", { count: heads.length });
  if (heads.length === allHeads(group).length) return rule;
  const layers = new Set(heads.map(([layer]) => layer));
  if (layers.size === 1 && heads.length === group.layers[heads[0][0]].heads) {
    return text("stem_of_layer", { layer: number(heads[0][0]), rule });
  }
  const some = heads.slice(0, MAX_NAMED).map(([layer, head]) => `${number(layer)}.${head + 1}`).join("-");
  return [rule, some, ...(heads.length > MAX_NAMED ? [text("stem_more")] : [])].join("-");
}

/** Of what the plots show: {title, lines, link}. */
export function captionOfView(/** @type {View} */ view) {
  const { plots, words } = view;
  const { label } = openGroup(view);
  const name = plots.map((plot) => plot.title).join(" | ");
  const title = words.text("file_title", { kind: label, name });
  return { title, lines: [...linesOf(view), ...madeLines(view)], link: linkOf(view) };
}

function captionOfGrid(/** @type {View} */ view) {
  const title = view.words.text("file_title", { kind: openGroup(view).label, name: view.words.text("heads") });
  return { title, lines: madeLines(view, [0]), link: linkOf(view) };
}

/** What else must be known to read the numbers. */
function linesOf(/** @type {View} */ view) {
  const { plots, state, words } = view;
  const [{ source, cells }] = plots;
  const lines = [];
  const group = openGroup(view);
  if (source.heads.length > 1 && source.heads.length < allHeads(group).length) {
    const short = ([layer, head]) => `${words.text("layer_short", { layer: group.layers[layer].number })} ${words.text("head_short", { head: head + 1 })}`;
    const names = words.row(source.heads.slice(0, MAX_NAMED).map(short));
    lines.push(words.text("of_heads", { names: source.heads.length > MAX_NAMED ? `${names} …` : names }));
  }
  if (cells.signed && !cells.differs) lines.push(words.text("signed_rows"));
  if (isLargest(plots[0])) lines.push(words.text("rows_not_one"));
  if (state.display.unit === "words" && hasPieces(group)) lines.push(words.text("merged"));
  if (state.display.mode === "links") lines.push(words.text(`file_links_${state.display.links[0]}`, { value: words.tick(Number(state.display.links.slice(1))) }));
  const pooled = pooledBy(cells);
  if (pooled) lines.push(words.text("pooled", pooled));
  return lines;
}

/** Largest of several heads: no distribution any more. */
export const isLargest = (/** @type {Plot} */ { source: { heads, how }, heads: drawnApart }) => how === "max" && heads.length > 1 && !drawnApart?.length;

/** How many weights one cell stands for, or null. */
export const pooledBy = ({ queries, keys }) => (queries.size > 1 || keys.size > 1 ? { rows: queries.size, columns: keys.size } : null);

/** Model and text of each input that is shown. */
function madeLines(/** @type {View} */ view, inputs = [...new Set(view.plots.map((plot) => plot.source.input).concat(comparedWith(view)?.input ?? 0))]) {
  const { words } = view;
  const lines = inputs.flatMap((input) => {
    const { model, revision, text } = groupOf(view, input, view.state.group).provenance;
    const by = model && words.text(revision ? "made_by_revision" : "made_by", { model, revision });
    return [by, text && words.text("made_of", { text })];
  });
  return [...new Set(lines.filter(Boolean))];
}

/** Where the same view opens; "" for a file without an address. */
function linkOf({ store }) {
  if (store.offers.includes("link")) return window.location.href;
  return (store.offline && document.querySelector("link[rel=canonical]")?.href) || ""; // a page that was saved knows it
}

const PRINT_SCALE = 3; // pixels of a PNG for every pixel of the layout
const THUMBNAIL = { size: 64, gap: 6, names: 30, top: 20 };

export const savePicture = (/** @type {View} */ view, ending) => savePlots(asPrinted(view), ending);
export const saveGrid = (/** @type {View} */ view, ending) => saveHeads(asPrinted(view), ending);

/** The view as it is drawn on paper: nothing is pointed at. */
const asPrinted = (/** @type {View} */ view) => Object.assign(Object.create(view), { theme: { ...view.theme, ...PRINTED }, dark: false, cursor: null });

function savePlots(/** @type {View} */ view, ending) {
  const { plots, parts, words } = view;
  const about = captionOfView(view);
  const across = plots.length > 1 && parts.plots.clientWidth > 1.5 * plots[0].layout.width;
  const blocks = plots.map((plot) => {
    const group = groupOf(view, plot.source.input, plot.source.group);
    return {
      ...plot.layout,
      title: words.text("file_title", { kind: group.label, name: plot.title }),
      names: [...sidesOf(view, group), ...(plot.heads ?? []).map(([layer, head], i) => [headName(view, { group: group.id, layer, head }), view.theme.heads[i]])],
      bar: barOf(view, plot),
      draw: (context) => {
        paintPlot(view, plot, context);
        paintMarks(view, plot, context);
      },
    };
  });
  savePictureFile(layOutFigure(view, blocks, about, across), about, ending, fileName(view, ending));
  view.renderHover(); // what paints marks also fades what lies under them on the page
}

const sidesOf = ({ words, theme }, group) => [
  [words.text("queries", { label: group.queries_label }), theme.queries],
  [words.text("keys", { label: group.keys_label }), theme.keys],
];

function saveHeads(/** @type {View} */ view, ending) {
  const group = openGroup(view);
  const about = captionOfGrid(view);
  const { size, gap, names, top } = THUMBNAIL;
  const across = Math.max(...group.layers.map((layer) => layer.heads));
  const block = {
    width: names + across * (size + gap),
    height: top + group.layers.length * (size + gap),
    title: about.title,
    names: sidesOf(view, group),
    bar: onPicture(view) ? null : barOf(view, null),
    draw: (context) => drawHeads(context, view, group),
  };
  savePictureFile(layOutFigure(view, [block], about), about, ending, gridName(view, ending));
}

function drawHeads(context, /** @type {View} */ view, group) {
  const { size, gap, names, top } = THUMBNAIL;
  const name = (text, x, y, align) => {
    Object.assign(context, { textAlign: align, textBaseline: "middle", font: `11px ${view.theme.font}`, fillStyle: view.theme.quiet });
    context.fillText(text, x, y);
  };
  const across = Math.max(...group.layers.map((layer) => layer.heads));
  for (let head = 0; head < across; head += 1) {
    name(view.words.text("head_short", { head: head + 1 }), names + head * (size + gap) + size / 2, top / 2, "center");
  }
  group.layers.forEach(({ number, heads }, layer) => {
    const y = top + layer * (size + gap);
    name(view.words.text("layer_short", { layer: number }), 0, y + size / 2, "left");
    for (let head = 0; head < heads; head += 1) {
      context.save();
      context.translate(names + head * (size + gap), y);
      drawHead(context, view, layer, head);
      context.restore();
    }
  });
}

/** One thumbnail; nothing where it is not here yet. */
function drawHead(context, /** @type {View} */ view, layer, head) {
  const { size } = THUMBNAIL;
  if (onPicture(view)) {
    paintOverThumbnail(context, view, layer, head, size);
    return;
  }
  const picture = pictureOf(view, 0, view.state.group, layer, false);
  if (!picture) return;
  const paint = view.paints.weights;
  const pixels = size * PRINT_SCALE;
  context.imageSmoothingEnabled = false;
  context.drawImage(onCanvas(rasterise({ ...picture, values: picture.of(head) }, paint.palette, byteSteps(paint), pixels, pixels)), 0, 0, size, size);
}

function savePictureFile(figure, about, ending, name) {
  const { width, height, draw } = figure;
  if (ending === "svg") {
    const context = new SvgContext();
    draw(context);
    saveFile(new Blob([context.document(width, height, about)], { type: "image/svg+xml" }), name);
    return;
  }
  const canvas = Object.assign(document.createElement("canvas"), { width: width * PRINT_SCALE, height: height * PRINT_SCALE });
  const context = canvas.getContext("2d");
  context.scale(PRINT_SCALE, PRINT_SCALE);
  draw(context);
  const texts = { Title: about.title, Description: about.lines.join("\n"), Source: about.link, Software: "Attention Atlas" };
  canvas.toBlob(async (blob) => saveFile(await withTexts(blob, texts), name), "image/png");
}
