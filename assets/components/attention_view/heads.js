// Tabs for the kinds of maps, the grid of every layer's heads as thumbnails, and the switches of heads.

import { sizeCanvas } from "../shared/canvas.js";
import { button, element } from "../shared/elements.js";
import { openHead, setDisplay } from "./actions.js";
import { byteSteps, makePaint, rasterise } from "./colours.js";
import { filterExample, filterNames, measureOf, orderedHeads, printText, readFilter, renderPrint, sortOf } from "./measures.js";
import { paintOverThumbnail } from "./over_picture.js";
import { chosenHeads, comparedWith, hasHead, headName, onPicture, openGroup, PAUSE, pictureOf, ruleOf, wantPictures, writeHeads } from "./store.js";

const headBeside = (made) => made.closest(".cell").firstChild;

const placeOf = ({ group }, layer, head) => `${group}.${layer}.${head}`;

/** A thumbnail with its switch; alone where heads cannot be switched. */
function withSwitch(/** @type {View} */ view, head) {
  if (!view.store.switches) return head;
  const made = element("button", "switch", { type: "button", role: "switch", tabindex: -1 });
  return element("span", "cell", { role: "none" }, head, element("span", "", { role: "gridcell" }, made));
}

export function markSwitches(/** @type {View} */ view) {
  const { parts, state, store, words } = view;
  const { switches } = store;
  const mark = (made, layer, head, text) => {
    const off = switches.has(placeOf(state, layer, head));
    made.setAttribute("aria-checked", !off);
    const label = words.text(off ? "switch_on" : "switch_off", { head: headName(view, { group: state.group, layer, head }) });
    made.setAttribute("aria-label", label);
    made.title = label;
    if (text) made.textContent = words.text(off ? "turn_on" : "turn_off");
    return off;
  };
  parts.openSwitch.hidden = !switches;
  if (!switches) return;
  mark(parts.openSwitch, state.layer, state.head, true);
  for (const made of parts.grid.querySelectorAll(".switch")) {
    const head = headBeside(made);
    head.classList.toggle("off", mark(made, Number(head.dataset.layer), Number(head.dataset.head), false));
  }
}

/** Switch a head off or on at once, and notify Python. */
function turn(/** @type {View} */ view, layer, head) {
  const place = placeOf(view.state, layer, head);
  const { switches } = view.store;
  if (!switches.delete(place)) switches.add(place);
  markSwitches(view);
  view.setTriggerValue?.("switch", place);
}

export function listenToSwitches(/** @type {View} */ view) {
  const { grid, openSwitch } = view.parts;
  grid.addEventListener("click", (event) => {
    const made = event.target.closest?.(".switch");
    if (!made) return;
    const { layer, head } = headBeside(made).dataset;
    turn(view, Number(layer), Number(head));
  });
  openSwitch.addEventListener("click", () => turn(view, view.state.layer, view.state.head));
}

const LARGEST_THUMBNAIL = 48;
const SMALLEST_THUMBNAIL = 18; // twelve heads fit on a phone
// As in the style sheet: what the grid's width holds beside thumbnails.
const GRID_GAP = 5;
const LAYER_NAMES = 24;

/** Tabs, one for each group; rebuilt only when the groups have changed, so that focus stays. */
export function renderTabs(/** @type {View} */ view) {
  const { tabs, panel } = view.parts;
  const groups = view.store.base.groups[0];
  const shape = JSON.stringify(groups.map((group) => [group.id, group.label]));
  if (tabs.dataset.shape !== shape) {
    tabs.dataset.shape = shape;
    tabs.replaceChildren(
      ...groups.map(({ id, label }) => button("tab", label, () => openHead(view, { group: id, layer: 0, head: 0 }), { role: "tab", id: `tab-${id}` })),
    );
  }
  tabs.hidden = groups.length < 2;
  groups.forEach((group, i) => {
    const chosen = group.id === view.state.group;
    tabs.children[i].setAttribute("aria-selected", chosen);
    tabs.children[i].tabIndex = chosen ? 0 : -1;
  });
  panel.setAttribute("aria-labelledby", `tab-${view.state.group}`);
}

export function moveInTabs(/** @type {View} */ view, event) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const tabs = [...view.parts.tabs.children];
  const tab = tabs[(tabs.indexOf(event.target) + step + tabs.length) % tabs.length];
  tab.click();
  tab.focus();
}

/** The grid's buttons, in layers or in the order of a measure; their pictures are painted by `paintGrid`. */
export function buildGrid(/** @type {View} */ view) {
  const { grid } = view.parts;
  const { layers } = openGroup(view);
  const { words, state, store } = view;
  const sort = sortOf(view);
  const lets = readFilter(view, state.display.filter);
  const heads = orderedHeads(view);
  const shown = new Set(heads.filter((head) => !lets || lets(head)).map(String));
  renderGridNote(view, Boolean(lets), shown.size, heads.length);
  const order = sort === "layer" ? "" : String(heads.map((head) => [head, measureOf(view, ...head, sort)]));
  const shape = JSON.stringify([store.stamp, state.group, sort, order, [...shown], Boolean(store.switches)]);
  if (grid.dataset.shape === shape) return;
  const focused = grid.contains(grid.getRootNode().activeElement);
  grid.dataset.shape = shape;
  grid.dataset.order = sort;

  const thumbnail = ([layer, head]) => {
    const attributes = { type: "button", role: "gridcell", "data-layer": layer, "data-head": head };
    return element("button", shown.has(String([layer, head])) ? "head" : "head faded", attributes, document.createElement("canvas"));
  };
  const name = (role, text) => element("span", "name", { role }, text);
  if (sort === "layer") {
    const widest = Math.max(...layers.map((layer) => layer.heads));
    grid.style.setProperty("--heads", String(widest));
    const top = element("div", "row", { role: "row" }, name("none", "")); // the corner
    for (let head = 0; head < widest; head += 1) top.append(name("columnheader", words.text("head_short", { head: head + 1 })));
    const rows = layers.map(({ number, heads: count }, layer) => {
      const header = name("rowheader", words.text("layer_short", { layer: number }));
      if (layers.some((each) => each.signed || each.rule)) header.title = ruleOf(view, layer);
      const row = element("div", "row", { role: "row" }, header);
      for (let head = 0; head < count; head += 1) row.append(withSwitch(view, thumbnail([layer, head])));
      return row;
    });
    grid.replaceChildren(top, ...rows);
  } else {
    const row = element("div", "ranking", { role: "row" });
    for (const [layer, head] of heads.filter((each) => shown.has(String(each)))) {
      const made = thumbnail([layer, head]);
      const value = measureOf(view, layer, head, sort);
      const short = `${words.text("layer_short", { layer: layers[layer].number })} ${words.text("head_short", { head: head + 1 })}`;
      made.append(element("span", "caption", {}, short, element("br"), value === null ? "" : sort === "search" ? words.number(value) : words.plain(value)));
      row.append(withSwitch(view, made));
    }
    grid.replaceChildren(row);
  }
  grid.dataset.painted = "";
  if (focused) grid.querySelector(".head")?.focus();
}

/** How many heads a filter lets through, or that it cannot be read. */
function renderGridNote(/** @type {View} */ view, readable, shown, all) {
  const { gridNote, filter } = view.parts;
  const { words } = view;
  const wrong = !readable;
  filter.setAttribute("aria-invalid", wrong);
  gridNote.hidden = !view.state.display.filter;
  const example = filterExample(view) || words.text("filter_hint", { name: words.text("head"), value: 1 });
  const names = words.row(filterNames(view).map(([, , name]) => name));
  gridNote.textContent = words.text(wrong ? "filter_unreadable" : "filter_shows", { shown, count: all, names, example });
}

/** Pictures and names of the thumbnails; painted again only when something they show has changed. */
export function paintGrid(/** @type {View} */ view) {
  const { grid } = view.parts;
  const { group, display } = view.state;
  const { layers } = openGroup(view);
  wantPictures(view);
  const room = grid.clientWidth - 6;
  const sort = sortOf(view);
  const across = sort === "layer" ? Number(grid.style.getPropertyValue("--heads")) : 8;
  const names = sort === "layer" ? LAYER_NAMES : 0;
  const size = Math.max(SMALLEST_THUMBNAIL, Math.min(LARGEST_THUMBNAIL, Math.floor((room - names - GRID_GAP * across) / across)));
  const here = layers.map((_, layer) => Number(Boolean(pictureOf(view, 0, group, layer, false))));
  const over = onPicture(view);
  const painted = JSON.stringify([size, here, display.scale, display.palette, view.dark, window.devicePixelRatio, over && [display.patches, display.fold, view.state.pins]]);
  if (grid.dataset.painted === painted) return;
  grid.dataset.painted = painted;
  grid.dataset.over = over;
  grid.style.setProperty("--thumbnail", `${size}px`);
  const paint = view.paints.weights;
  const steps = byteSteps(paint);
  const signed = layers.map((_, layer) => signedPaint(view, layer));
  for (const button of grid.querySelectorAll(".head")) {
    const [layer, head] = [Number(button.dataset.layer), Number(button.dataset.head)];
    const picture = pictureOf(view, 0, group, layer, false);
    const name = headName(view, { group, layer, head });
    button.setAttribute("aria-label", name);
    const { rule } = layers[layer];
    button.title = [name, rule ? view.words.text(rule) : "", printText(view, layer, head)].filter(Boolean).join("\n");
    button.classList.toggle("absent", !picture);
    const context = sizeCanvas(button.firstChild, size, size);
    if (over) {
      if (!paintOverThumbnail(context, view, layer, head, size)) grid.dataset.painted = ""; // still on its way
      continue;
    }
    if (!picture) continue;
    const { width, height } = context.canvas;
    /** @type {[Paint, (byte: number) => number, number]} */
    const [colours, stepsOf, zero] = signed[layer] ?? [paint, steps, 0];
    context.putImageData(rasterise({ ...picture, values: picture.of(head) }, colours.palette, stepsOf, width, height, zero), 0, 0);
  }
}

/** Colours, steps and the byte of 0 for a layer of signed maps; null for others. @returns {[Paint, (byte: number) => number, number] | null} */
function signedPaint(/** @type {View} */ view, layer) {
  const most = pictureOf(view, 0, view.state.group, layer, false)?.most;
  if (!most) return null;
  const { scale, palette } = view.state.display;
  const paint = makePaint(scale, palette, true, most);
  return [paint, byteSteps(paint, most), 128];
}

/** Which heads are open, chosen and compared with, in the grid and in words under it. */
export function markHeads(/** @type {View} */ view) {
  const { layer: openLayer, head: openNumber } = view.state;
  const chosen = new Set(view.state.display.heads === "one" ? [] : chosenHeads(view).map(String));
  const other = comparedWith(view);
  for (const button of view.parts.grid.querySelectorAll(".head")) {
    const [layer, head] = [Number(button.dataset.layer), Number(button.dataset.head)];
    const open = layer === openLayer && head === openNumber;
    button.setAttribute("aria-selected", open);
    button.tabIndex = open ? 0 : -1;
    button.classList.toggle("chosen", chosen.has(String([layer, head])));
    button.classList.toggle("other", Boolean(other) && other.input === 0 && other.layer === layer && other.head === head);
  }
  const heads = view.parts.grid.querySelectorAll(".head");
  if (heads.length && ![...heads].some((button) => button.tabIndex === 0)) heads[0].tabIndex = 0;
  renderPrint(view);
}

export function listenToGrid(/** @type {View} */ view) {
  const { grid } = view.parts;
  const of = (event) => event.target.closest?.(".head");
  /** @returns {Head} */
  const read = (button) => [Number(button.dataset.layer), Number(button.dataset.head)];
  grid.addEventListener("click", (event) => {
    const button = of(event);
    if (button) pickHead(view, read(button), event.shiftKey || event.ctrlKey || event.metaKey);
  });
  const hover = (head) => {
    if (String(view.hovered) === String(head)) return;
    view.hovered = head;
    renderPrint(view);
  };
  grid.addEventListener("pointerover", (event) => event.pointerType !== "touch" && hover(of(event) ? read(of(event)) : null));
  grid.addEventListener("pointerleave", () => hover(null));
  grid.addEventListener("keydown", (event) => moveInGrid(view, event));
}

/** A click on a head opens it; or chooses it among several, or as the one to compare with. */
function pickHead(/** @type {View} */ view, [layer, head], more) {
  const { state } = view;
  const { display } = state;
  if (display.compare !== "off" && (more || view.slot === "second")) {
    const input = comparedWith(view)?.input ?? 0;
    setDisplay(view, { other: `${input}.${layer}.${head}` });
    return;
  }
  if (more || view.choosing) {
    const heads = chosenHeads(view).slice(0, 64);
    const left = heads.filter(([l, h]) => l !== layer || h !== head);
    const next = left.length < heads.length ? left : [...heads, [layer, head]].slice(-64);
    setDisplay(view, { heads: next.length > 1 ? writeHeads(next) : "one" }, 0);
    if (next.length === 1) openHead(view, { group: state.group, layer: next[0][0], head: next[0][1] });
    return;
  }
  openHead(view, { group: state.group, layer, head });
}

function moveInGrid(/** @type {View} */ view, event) {
  const { layer, head, group } = view.state;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  let to = null;
  if (sortOf(view) === "layer") {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    to = step && [layer + step[0], head + step[1]];
  } else {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -8, ArrowDown: 8 }[event.key];
    const heads = shownHeads(view);
    to = step && heads[heads.findIndex(([l, h]) => l === layer && h === head) + step];
  }
  if (!to || !hasHead(openGroup(view), to[0], to[1])) return;
  event.preventDefault();
  openHead(view, { group, layer: to[0], head: to[1] }, PAUSE);
  view.parts.grid.querySelector(".head[aria-selected=true]")?.focus();
}

const shownHeads = (/** @type {View} */ view) =>
  [...view.parts.grid.querySelectorAll(".head:not(.faded)")].map(({ dataset }) => [Number(dataset.layer), Number(dataset.head)]);

/** Open the head `steps` further on among those shown, round and round. */
export function stepHead(/** @type {View} */ view, steps) {
  const heads = shownHeads(view);
  if (!heads.length) return;
  const { layer, head, group } = view.state;
  const here = heads.findIndex(([l, h]) => l === layer && h === head);
  const [l, h] = heads[here < 0 ? 0 : (here + steps + heads.length) % heads.length];
  openHead(view, { group, layer: l, head: h }, PAUSE);
}
