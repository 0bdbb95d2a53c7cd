// Files of what is shown: a picture (PNG, SVG), the numbers (CSV, NPZ), the view itself (HTML, notebook), and its link.

import { element } from "../shared/elements.js";
import { textWidth } from "./map_layout.js";
import { npyFloats, npyNumbers, npyTexts, zip } from "./npz.js";
import { paintMarks, paintPlot } from "./plot.js";
import { groupOf, openGroup, partOf } from "./store.js";
import { SvgContext } from "./svg.js";

const PRINT_SCALE = 3; // pixels of a PNG for every pixel of the layout
const MARGIN = 16;

export function exportAs(view, kind) {
  const save = { png: savePng, svg: saveSvg, csv: saveCsv, npz: saveNpz, page: askForFile, notebook: askForFile, link: copyLink }[kind];
  save(view, kind);
  view.parts.exports.open = false;
}

const fileName = (view, ending) => {
  const { group, layer, head } = view.state;
  return `attention-${group}-layer-${openGroup(view).layers[layer].number}-head-${head + 1}.${ending}`;
};

function saveFile(blob, name) {
  const link = element("a", "", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** How large a picture of all plots is, and where each goes. */
function pictureFrame(view) {
  const across = view.plots.length > 1 && view.parts.plots.clientWidth > 1.5 * view.plots[0].layout.width;
  let [x, y, width, height] = [MARGIN, MARGIN + 46, 0, 0];
  const places = view.plots.map(({ layout }) => {
    const place = { x, y };
    width = Math.max(width, x + layout.width + MARGIN);
    height = Math.max(height, y + layout.height + 30);
    if (across) x += layout.width + MARGIN;
    else y += layout.height + 40;
    return place;
  });
  return { width: Math.ceil(width), height: Math.ceil(height), places };
}

/** Draw the plots with their names into any context. */
function drawPicture(view, context, { width, height, places }) {
  const { theme, words } = view;
  context.fillStyle = theme.paper;
  context.fillRect(0, 0, width, height);
  const write = (text, x, y, size, colour, bold = "") => {
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.font = `${bold}${size}px ${theme.font}`;
    context.fillStyle = colour;
    context.fillText(text, x, y);
    return x + textWidth(text, context.font) + 18;
  };
  view.plots.forEach((plot, i) => {
    const { x, y } = places[i];
    const group = groupOf(view, plot.source.input, plot.source.group);
    write(plot.title, x, y - 34, 15, theme.text, "bold ");
    const next = write(words.text("queries", { label: group.queries_label }), x, y - 14, 12, theme.queries);
    const then = write(words.text("keys", { label: group.keys_label }), next, y - 14, 12, theme.keys);
    write(scaleText(view, plot), then, y - 14, 12, theme.quiet);
    context.save();
    context.translate(x, y);
    paintPlot(view, plot, context);
    paintMarks(view, plot, context);
    context.restore();
  });
}

const scaleText = (view, plot) => view.words.text(plot.cells.signed ? "difference" : `scale_${view.state.look.scale}`);

function savePng(view) {
  const frame = pictureFrame(view);
  const canvas = document.createElement("canvas");
  canvas.width = frame.width * PRINT_SCALE;
  canvas.height = frame.height * PRINT_SCALE;
  const context = canvas.getContext("2d");
  context.scale(PRINT_SCALE, PRINT_SCALE);
  drawPicture(view, context, frame);
  canvas.toBlob((blob) => saveFile(blob, fileName(view, "png")), "image/png");
}

function saveSvg(view) {
  const frame = pictureFrame(view);
  const context = new SvgContext();
  drawPicture(view, context, frame);
  const text = context.document(frame.width, frame.height, view.plots.map((plot) => plot.title).join(" – "));
  saveFile(new Blob([text], { type: "image/svg+xml" }), fileName(view, "svg"));
}

/** The numbers of the first plot: all of a short map, else the part shown. */
const numbersOf = (view) => (openGroup(view).exact ? view.reading : view.plots[0].cells);

const namesOf = (side) => Array.from({ length: side.count }, (_, bin) => side.name(bin));

function saveCsv(view) {
  const { rows, columns, queries, keys, values } = numbersOf(view);
  const quote = (text) => `"${text.replaceAll('"', '""')}"`;
  const lines = [["", ...namesOf(keys).map(quote)].join(",")];
  const names = namesOf(queries);
  for (let row = 0; row < rows; row += 1) {
    lines.push([quote(names[row]), ...values.subarray(row * columns, (row + 1) * columns)].join(","));
  }
  saveFile(new Blob([`${lines.join("\r\n")}\r\n`], { type: "text/csv" }), fileName(view, "csv"));
}

function saveNpz(view) {
  const { rows, columns, queries, keys, values } = numbersOf(view);
  const files = {
    "weights.npy": npyFloats(values, [rows, columns]),
    "queries.npy": npyTexts(namesOf(queries)),
    "keys.npy": npyTexts(namesOf(keys)),
    // Where the part begins, and how many tokens or words a cell covers: 1 unless it is an overview.
    "first.npy": npyNumbers([queries.from, keys.from]),
    "units_per_cell.npy": npyNumbers([queries.size, keys.size]),
  };
  saveFile(zip(files), fileName(view, "npz"));
}

// Files that Python writes: a page that opens without a server, with as many exact maps as fit, and a notebook that makes
// the view again.
const WRITTEN = {
  page: { type: "text/html", ending: "html" },
  notebook: { type: "application/x-ipynb+json", ending: "ipynb" },
};

function askForFile(view, kind) {
  view.store.parts.delete(kind);
  view.wantsFile = kind;
  view.render();
}

export function deliverFile(view) {
  const kind = view.wantsFile;
  const file = kind && partOf(view, kind);
  if (!file) return;
  view.wantsFile = null;
  saveFile(new Blob([file.values], { type: WRITTEN[kind].type }), fileName(view, WRITTEN[kind].ending));
}

/** The address holds the state; it is copied once Python has written the newest there. */
function copyLink(view) {
  const copied = () => {
    view.parts.live.textContent = view.words.text("link_copied");
    view.parts.exportNote.textContent = view.words.text("link_copied");
    setTimeout(() => (view.parts.exportNote.textContent = ""), 4000);
  };
  const { href } = window.location;
  if (navigator.clipboard) navigator.clipboard.writeText(href).then(copied, () => copyOldWay(href) && copied());
  else if (copyOldWay(href)) copied();
}

/** Where the page came over plain HTTP, browsers offer only this. */
function copyOldWay(text) {
  const field = element("textarea", "");
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}
