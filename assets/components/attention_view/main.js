// Entry module: creates a view, receives answers and renders.

import { stageHeight } from "../shared/canvas.js";
import { partsOf, readFrame, stopWatching, viewComponent, watchWidth } from "../shared/mount.js";
import { listenToText, openHead } from "./actions.js";
import { makePaint, readTheme } from "./colours.js";
import { continueSaving, deliverFile } from "./export.js";
import { isLargest } from "./figure.js";
import { listenToKeys, listenToPlot, listenToZoom } from "./gestures.js";
import { buildGrid, listenToGrid, listenToSwitches, markHeads, markSwitches, moveInTabs, paintGrid, renderTabs } from "./heads.js";
import { MAX_LINKS } from "./map.js";
import { nameOf, wantWeights } from "./measures.js";
import { drawScale, renderPlots } from "./plot.js";
import { buildSentence, listenToSentence, renderHover } from "./sentence.js";
import { allHeads, canChange, comparedWith, groupOf, hasHead, makeView, openGroup, PAUSE, pinsOf, requestMissing, sendMessage, takeAnswer } from "./store.js";
import { axesOf, hasPieces, makeWords } from "./tokens.js";
import { listenToSearch, listenToTools, renderLegendOfHeads, renderSearch, renderTools } from "./tools.js";

const NAMED = /^#head=([a-z0-9_-]+)\.(\d+)\.(\d+)$/;

/** Listen to the whole page. Returns a function that stops. */
function listenToHeadLinks(/** @type {View} */ view) {
  const open = (event) => {
    const link = event.target.closest?.("a[href^='#head=']");
    const named = link && NAMED.exec(link.getAttribute("href"));
    const group = named && view.store.base && groupOf(view, 0, named[1]);
    const [layer, head] = named ? named.slice(2).map(Number) : [];
    if (!group || !hasHead(group, layer, head)) return;
    event.preventDefault();
    openHead(view, { group: group.id, layer, head });
    view.parts.root.scrollIntoView({ block: "nearest" });
  };
  document.addEventListener("click", open);
  return () => document.removeEventListener("click", open);
}

function createView(parent) {
  const view = makeView(partsOf(parent));
  const { parts } = view;
  parts.root.inert = true; // until there is an answer to show
  const [first] = parts.plots.children;
  if (parts.plots.children.length === 1) parts.plots.append(Object.assign(first.cloneNode(true), { hidden: true }));
  view.stages = [...parts.plots.querySelectorAll("figure")].map((figure) => ({ figure, ...piecesOf(figure) }));
  view.render = () => render(view);
  view.renderHover = () => renderHover(view);
  view.stages.forEach((_, index) => {
    listenToPlot(view, index);
    listenToZoom(view, index);
  });
  listenToGrid(view);
  listenToSwitches(view);
  listenToSentence(view);
  listenToTools(view);
  listenToSearch(view);
  parts.tabs.addEventListener("keydown", (event) => moveInTabs(view, event));
  view.stops = [listenToKeys(view), listenToHeadLinks(view), listenToText(view)];
  watchWidth(view, render);
  return view;
}

/** The elements of a plot by their data-piece. @returns {any} */
function piecesOf(figure) {
  return Object.fromEntries([...figure.querySelectorAll("[data-piece]")].map((node) => [node.dataset.piece, node]));
}

function closeView(/** @type {View} */ view) {
  stopWatching(view);
  for (const stop of view.stops) stop();
  const { sending, requesting, retrying } = view.channel;
  for (const timer of [sending, requesting, retrying, view.speaking, view.waiting]) clearTimeout(timer);
  cancelAnimationFrame(view.zooming);
}

/** Show an answer. The reader may have moved on since Python made it: then the parts count, not its state. */
function show(/** @type {View} */ view, answer) {
  const { header } = answer;
  if (!takeAnswer(view.store, answer)) {
    // An answer for someone who holds the base; say that it is not here.
    view.store.stamp = null;
    sendMessage(view);
    return;
  }
  const { language, words } = view.store.base;
  if (view.stamp !== header.stamp) {
    view.words = makeWords(words, language);
    Object.assign(view, { stamp: header.stamp, cursor: null, hovered: null, saving: null });
    view.channel.requested = "";
  }
  const gone = view.state && !stateFits(view);
  if (!view.state || header.turn >= view.channel.turn || gone) {
    view.state = header.state;
    Object.assign(view.channel, { turn: header.turn, sentTurn: header.turn, known: JSON.stringify(view.state) });
  }
  view.parts.root.inert = false;
  render(view);
}

function stateFits(/** @type {View} */ view) {
  const { group, layer, head } = view.state;
  const found = groupOf(view, 0, group);
  if (!found || !hasHead(found, layer, head)) return false;
  const counts = { query: found.query_tokens.length, key: found.key_tokens.length };
  if (view.state.display.mode === "picture" && !found.image) return false;
  return pinsOf(view).every(({ axis, index }) => index < counts[axis]);
}

/** Render everything from the parts that have arrived, for the current width. */
function render(/** @type {View} */ view) {
  const { parts, store, state } = view;
  view.width = parts.root.clientWidth;
  if (!store.base || !state || !view.width) return;
  view.channel.wanted.clear();
  view.theme = readTheme(parts.root);
  view.dark = parts.root.dataset.theme === "dark";
  const { scale, palette } = state.display;
  view.paints = { weights: makePaint(scale, palette, false), signed: makePaint(scale, palette, true) };
  view.axes = axesOf(view);
  renderTabs(view);
  renderTools(view);
  wantWeights(view);
  renderSearch(view);
  parts.plots.dataset.count = comparedWith(view) && state.display.compare === "side" ? 2 : 1;
  buildGrid(view);
  paintGrid(view);
  markHeads(view);
  markSwitches(view);

  const group = openGroup(view);
  parts.root.dataset.mode = state.display.mode;
  parts.root.dataset.presented = stageHeight(parts.root) !== null;
  parts.root.dataset.zoomed = state.display.zoom !== "whole";
  parts.root.dataset.oneHead = allHeads(group).length === 1 && store.base.groups.length === 1;
  parts.openName.textContent = nameOf(view);
  parts.openName.hidden = parts.plots.dataset.count === "2"; // each has its own
  parts.queriesLabel.textContent = view.words.text("queries", { label: group.queries_label });
  parts.keysLabel.textContent = view.words.text("keys", { label: group.keys_label });
  renderPlots(view);
  renderLegendOfHeads(view);
  drawScale(view);
  renderMapNote(view, group);
  buildSentence(view);
  renderHover(view);
  deliverFile(view);
  continueSaving(view);
  requestMissing(view);
}

/** Notes about the cells. Waiting is noted only after a while, so that the page does not jump. */
function renderMapNote(/** @type {View} */ view, group) {
  const { mapNote } = view.parts;
  const { words, state, store } = view;
  const { cells } = view.plots[0];
  const pooled = cells.queries.size > 1 || cells.keys.size > 1;
  const notes = [];
  if (view.unequal) notes.push("unequal");
  if (cells.differs) notes.push("difference_scaled");
  else if (cells.signed) notes.push("signed_rows");
  if (comparedWith(view)?.input) notes.push(cells.differs ? "matched" : "partners");
  if (state.display.sort === "changed" && canChange(view)) notes.push("about_changed");
  if (view.plots.some(isLargest)) notes.push("rows_not_one");
  if (state.display.unit === "words" && hasPieces(group)) notes.push("merged");
  if (view.plots.some((plot) => plot.links.length === MAX_LINKS)) notes.push("most_links");
  if (pooled) notes.push("overview");
  else if (!cells.exact && store.offline) notes.push("not_in_file");
  const writeNote = (names) => {
    mapNote.hidden = !names.length;
    mapNote.textContent = names.map((name) => words.text(name, { count: words.tick(MAX_LINKS) })).join(" ");
  };
  clearTimeout(view.waiting);
  writeNote(notes);
  if (pooled || cells.exact || store.offline) return;
  view.waiting = setTimeout(() => writeNote([...notes, "waiting"]), 2 * PAUSE);
}

export default viewComponent(createView, (view, data, { setStateValue, setTriggerValue }) => {
  Object.assign(view, { setStateValue, setTriggerValue });
  show(view, readFrame(data));
}, closeView);
