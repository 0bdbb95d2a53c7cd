// The Save menu: pictures (PNG, SVG), numbers (CSV, NPZ), the view (HTML, notebook) and its link.

import { copyText, saveFile } from "../shared/elements.js";
import { cellsOf, differenceOf, mapName, otherSource, windowOf } from "./cells.js";
import { captionOfView, fileName, pooledBy, saveGrid, savePicture, stemOf } from "./figure.js";
import { npyFloats, npyNumbers, npyTexts, zip } from "./file_formats.js";
import { onPicture, openGroup, partOf, zoomOf } from "./store.js";
import { axesOf, makeSide } from "./tokens.js";

const STRIP = 2 ** 20; // weights in one answer, as in viz_core/view/computed_maps.py
const MAX = 2 ** 24; // weights that are fetched for a file: all of 4,096 x 4,096

/** Save the numbers as they are now, once all of them are here. */
function saveNumbers(/** @type {View} */ view, ending) {
  view.saving = { ending, stem: stemOf(view), about: captionOfView(view), tables: tablesOf(view) };
  view.render();
}

/** Go on with what is being saved: write it if it is whole, else ask for the next strip. */
export function continueSaving(/** @type {View} */ view) {
  if (!view.saving) return;
  const { ending, stem, about } = view.saving;
  let { tables } = view.saving;
  for (const table of tables) fillTable(view, table);
  if (tables.some((table) => table.refused)) tables = tablesOf(view, false);
  const total = (key) => tables.reduce((sum, table) => sum + table[key], 0);
  const left = tables.some((table) => table.done < table.rows);
  view.parts.exportNote.textContent = left ? view.words.text("fetching", { done: total("done"), count: total("rows") }) : "";
  if (left) return;
  view.saving = null;
  WRITE[ending](tables, stem + tables[0].suffix, about, view.words);
}

/** One table for each plot: all of a short map, the part shown of a long one; exact if it may be fetched. */
function tablesOf(/** @type {View} */ view, fetch = true) {
  return view.plots.map((plot) => {
    const [cells, wanted] = onPicture(view) ? [plot.cells, null] : wholeOf(view, plot, fetch);
    const { queries, keys } = wanted ?? cells;
    const pooled = pooledBy({ queries, keys });
    const what = view.words.text(plot.cells.differs ? "difference" : "weight");
    const values = { queries: openGroup(view).queries_label, keys: openGroup(view).keys_label, name: plot.title, what, ...pooled };
    return {
      ...wanted, queries, keys, pooled, title: plot.title, strips: wanted ? [] : [cells.values],
      rows: queries.count, columns: keys.count, done: wanted ? 0 : queries.count,
      corner: view.words.text(pooled ? "corner_pooled" : "corner", values),
      suffix: pooled ? `-${view.words.text("stem_pooled", { rows: pooled.rows, columns: pooled.columns })}` : "",
    };
  });
}

/** What of a plot is here already, or the sources and the window that are still to come. */
function wholeOf(/** @type {View} */ view, plot, fetch) {
  const { exact } = openGroup(view);
  const zoom = exact ? null : zoomOf(view);
  const other = plot.cells.differs ? otherSource(view) : null;
  const sources = [plot.source, ...(other ? [other] : [])];
  const each = sources.map((source) => cellsOf(view, source, zoom));
  const cells = other ? differenceOf(view, each[0], each[1]) : each[0];
  if (cells.exact) return [cells, null];
  const axes = axesOf(view, plot.source.input);
  const { row, rows, column, columns } = windowOf(view, axes, zoom);
  if (!fetch || view.store.offline || rows * columns > MAX) return [cells, null];
  const side = (axis, from, count) => makeSide(axis, from, count, 1, view.words);
  return [null, { sources, queries: side(axes.query, row, rows), keys: side(axes.key, column, columns) }];
}

function fillTable(/** @type {View} */ view, table) {
  const { sources, queries, keys, rows, columns, strips } = table;
  const height = Math.max(1, Math.floor(STRIP / columns));
  while (table.done < rows) {
    const count = Math.min(height, rows - table.done);
    const names = sources.map((source) => `rows ${mapName(source)} ${queries.from + table.done} ${count} ${keys.from} ${columns}`);
    table.refused = names.some((name) => view.store.missing.has(name));
    const found = names.map((name) => partOf(view, name)?.values);
    if (found.includes(undefined)) return;
    strips.push(found[1] ? found[0].map((value, i) => value - found[1][i]) : found[0]);
    names.forEach((name) => view.store.parts.delete(name)); // they are held here now
    table.done += count;
  }
}

const namesOf = (side) => Array.from({ length: side.count }, (_, bin) => side.name(bin));
/** A cell that is text for a spreadsheet too, which would run what begins as a formula does. */
const quote = (text) => `"${text.replace(/^[=+\-@\t\r](?=.)/s, "'$&").replaceAll('"', '""')}"`;

/**
 * A table as pieces of text, so that a long one is never one string. The format is that of ui/chapter/downloads.py: where the
 * comma is the decimal separator, semicolons separate columns; a byte order mark tells Excel that the text is not ASCII.
 */
function csvOf({ corner, queries, keys, columns, strips }, { decimal }) {
  const separator = decimal === "," ? ";" : ",";
  const written = (values) => {
    const text = values.join(separator);
    return decimal === "." ? text : text.replaceAll(".", decimal);
  };
  const names = namesOf(queries);
  const head = [corner, ...namesOf(keys)].map(quote).join(separator);
  const mark = /^[\0-\x7f]*$/.test(head + names.join("")) ? "" : "\ufeff";
  const pieces = [`${mark}${head}\r\n`];
  let row = 0;
  for (const strip of strips) {
    for (let from = 0; from < strip.length; from += columns, row += 1) {
      pieces.push(`${quote(names[row])}${separator}${written(strip.subarray(from, from + columns))}\r\n`);
    }
  }
  return new Blob(pieces, { type: "text/csv" });
}

const WRITE = {
  async csv(tables, stem, about, words) {
    if (tables.length === 1) {
      saveFile(csvOf(tables[0], words), `${stem}.csv`);
      return;
    }
    const bytes = await Promise.all(tables.map(async (table) => new Uint8Array(await csvOf(table, words).arrayBuffer())));
    saveFile(zip({ "first.csv": bytes[0], "second.csv": bytes[1] }), `${stem}.csv.zip`);
  },
  npz(tables, stem, { title, lines, link }) {
    const files = { "about.npy": npyTexts([title, ...tables.map((table) => table.corner), ...lines, link]) };
    tables.forEach((table, i) => {
      const { queries, keys, rows, columns, strips } = table;
      const own = (name) => `${i ? "second_" : ""}${name}.npy`;
      files[own("weights")] = npyFloats(joined(strips, rows * columns), [rows, columns]);
      files[own("queries")] = npyTexts(namesOf(queries));
      files[own("keys")] = npyTexts(namesOf(keys));
      // Where the part begins, and how many tokens or words a cell covers: 1 unless each is the largest of several.
      files[own("first")] = npyNumbers([queries.from, keys.from]);
      files[own("units_per_cell")] = npyNumbers([queries.size, keys.size]);
    });
    saveFile(zip(files), `${stem}.npz`);
  },
};

function joined(strips, length) {
  if (strips.length === 1) return strips[0];
  const all = new Float32Array(length);
  let at = 0;
  for (const strip of strips) {
    all.set(strip, at);
    at += strip.length;
  }
  return all;
}

const SAVE = {
  png: savePicture, svg: savePicture, csv: saveNumbers, npz: saveNumbers, page: requestFile, notebook: requestFile, link: copyLink,
  "grid-png": (view) => saveGrid(view, "png"),
  "grid-svg": (view) => saveGrid(view, "svg"),
};

export function exportAs(/** @type {View} */ view, kind) {
  SAVE[kind](view, kind);
  view.parts.exports.open = false;
}

// Files that Python writes: a page that opens without a server, with as many exact maps as fit, and a notebook that makes
// the view again.
const WRITTEN = {
  page: { type: "text/html", ending: "html" },
  notebook: { type: "application/x-ipynb+json", ending: "ipynb" },
};

// What is being written. A run that waited for something builds the view anew; then the same map in the new view takes it.
let pending = null;

function requestFile(/** @type {View} */ view, kind) {
  view.store.parts.delete(kind);
  pending = { view, kind, name: fileName(view, WRITTEN[kind].ending) };
  view.render();
}

export function deliverFile(/** @type {View} */ view) {
  if (!pending) return;
  const { type, ending } = WRITTEN[pending.kind];
  if (pending.view !== view && pending.name !== fileName(view, ending)) return;
  const file = partOf(view, pending.kind);
  if (!file) return;
  pending = null;
  saveFile(new Blob([/** @type {BlobPart} */ (file.values)], { type }), fileName(view, ending));
}

/** The address holds the state; it is copied once Python has written the newest there. */
async function copyLink(/** @type {View} */ view) {
  if (!(await copyText(window.location.href))) return;
  view.parts.live.textContent = view.words.text("link_copied");
  view.parts.exportNote.textContent = view.words.text("link_copied");
  setTimeout(() => (view.parts.exportNote.textContent = ""), 4000);
}
