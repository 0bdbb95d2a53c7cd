// The Save menu: pictures (PNG, SVG), numbers (CSV, NPZ), the view (HTML, notebook) and its link.

import { copyText } from "../shared/copy.js";
import { saveFile } from "../shared/files.js";
import { fileName } from "./caption.js";
import { saveNumbers } from "./export_numbers.js";
import { saveGrid, savePicture } from "./export_pictures.js";
import { partOf } from "./store.js";

const SAVE = {
  png: savePicture, svg: savePicture, csv: saveNumbers, npz: saveNumbers, page: requestFile, notebook: requestFile, link: copyLink,
  "grid-png": (view) => saveGrid(view, "png"),
  "grid-svg": (view) => saveGrid(view, "svg"),
};

export function exportAs(view, kind) {
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

function requestFile(view, kind) {
  view.store.parts.delete(kind);
  pending = { view, kind, name: fileName(view, WRITTEN[kind].ending) };
  view.render();
}

export function deliverFile(view) {
  if (!pending) return;
  const { type, ending } = WRITTEN[pending.kind];
  if (pending.view !== view && pending.name !== fileName(view, ending)) return;
  const file = partOf(view, pending.kind);
  if (!file) return;
  pending = null;
  saveFile(new Blob([file.values], { type }), fileName(view, ending));
}

/** The address holds the state; it is copied once Python has written the newest there. */
async function copyLink(view) {
  if (!(await copyText(window.location.href))) return;
  view.parts.live.textContent = view.words.text("link_copied");
  view.parts.exportNote.textContent = view.words.text("link_copied");
  setTimeout(() => (view.parts.exportNote.textContent = ""), 4000);
}
