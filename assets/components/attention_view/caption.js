// Names and captions of saved files: what is shown, of which model and text, with a link.

import { hasPieces } from "./axis.js";
import { comparedWith, zoomOf } from "./state.js";
import { allHeads, groupOf, openGroup } from "./store.js";

const MOST_NAMED = 12; // heads

/** "attention-cross-mean-of-24-heads-words": two views that differ have two names. */
export function stemOf(view) {
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

export const fileName = (view, ending) => `${stemOf(view)}.${ending}`;

export const gridName = (view, ending) => `${view.words.text("stem")}-${view.state.group}-${view.words.text("stem_all")}.${ending}`;

function headsPart(view, { heads, how }) {
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
  const some = heads.slice(0, MOST_NAMED).map(([layer, head]) => `${number(layer)}.${head + 1}`).join("-");
  return [rule, some, ...(heads.length > MOST_NAMED ? [text("stem_more")] : [])].join("-");
}

/** Of what the plots show: {title, lines, link}. */
export function captionOfView(view) {
  const { plots, words } = view;
  const { label } = openGroup(view);
  const name = plots.map((plot) => plot.title).join(" | ");
  const title = words.text("file_title", { kind: label, name });
  return { title, lines: [...linesOf(view), ...madeLines(view)], link: linkOf(view) };
}

/** Of the whole grid. */
export function captionOfGrid(view) {
  const title = view.words.text("file_title", { kind: openGroup(view).label, name: view.words.text("heads") });
  return { title, lines: madeLines(view, [0]), link: linkOf(view) };
}

/** What else must be known to read the numbers. */
function linesOf(view) {
  const { plots, state, words } = view;
  const [{ source, cells }] = plots;
  const lines = [];
  const group = openGroup(view);
  if (source.heads.length > 1 && source.heads.length < allHeads(group).length) {
    const short = ([layer, head]) => `${words.text("layer_short", { layer: group.layers[layer].number })} ${words.text("head_short", { head: head + 1 })}`;
    const names = words.row(source.heads.slice(0, MOST_NAMED).map(short));
    lines.push(words.text("of_heads", { names: source.heads.length > MOST_NAMED ? `${names} …` : names }));
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
export const isLargest = ({ source: { heads, how }, heads: drawnApart }) => how === "max" && heads.length > 1 && !drawnApart?.length;

/** How many weights one cell stands for, or null. */
export const pooledBy = ({ queries, keys }) => (queries.size > 1 || keys.size > 1 ? { rows: queries.size, columns: keys.size } : null);

/** Model and text of each input that is shown. */
function madeLines(view, inputs = [...new Set(view.plots.map((plot) => plot.source.input).concat(comparedWith(view)?.input ?? 0))]) {
  const { words } = view;
  const lines = inputs.flatMap((input) => {
    const { model, revision, text } = groupOf(view, input, view.state.group).made;
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
