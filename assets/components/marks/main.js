// The answers of a question as marks on a figure of the page: chosen by a click, or by arrow keys and Enter. After the
// guess a ring moves from it to the truth, while Python draws the figure that shows it.

import { element } from "../shared/elements.js";
import { partsOf, readJson, stopWatching, viewComponent, watchWidth } from "../shared/mount.js";
import { bringIntoSight } from "../shared/sight.js";

const POLL_INTERVAL = 150; // ms between checks of the figure: it loads late, moves and changes
const LEAST = 24; // px of a mark that a finger can hit
const SEEN = 12; // px of one that is only seen
const TALL = 64; // px: such marks have their answer in a corner
const ROOMY = 64; // px: narrower marks have their answer above them
const GAP = 6; // px between the question and the figure under it
const SETTLES = 3000; // ms in which a page that runs again may take the focus away
const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

function createView(parent) {
  const view = { parts: partsOf(parent), data: null, choosing: false, buttons: [], drawn: "" };
  const { open, layer } = view.parts;
  open.addEventListener("click", () => (view.choosing ? close(view) : begin(view)));
  layer.addEventListener("keydown", (event) => press(view, event));
  watchWidth(view, render);
  view.poll = setInterval(() => isShown(view) && render(view), POLL_INTERVAL);
  return view;
}

function closeView(view) {
  view.choosing = false;
  if (view.data) makeRoom(view, figureOf(view), false);
  stopWatching(view);
  clearInterval(view.poll);
}

const isRevealed = ({ data }) => data.guess !== null;
const isShown = (view) => view.data && (view.choosing || isRevealed(view));

const figureOf = ({ data }) => document.querySelector(`.st-key-${CSS.escape(data.figure)}`);

/** Show the marks; Python sets the controls as in the question. */
function begin(view) {
  view.choosing = true;
  view.begun = performance.now();
  view.seeks = true;
  view.send("open");
  const { top, bottom } = figureOf(view)?.getBoundingClientRect() ?? {};
  if (top < 0 || bottom > innerHeight) figureOf(view).scrollIntoView({ block: "center" }); // one out of sight is not drawn
  render(view);
}

function close(view) {
  view.choosing = false;
  render(view);
  view.parts.open.focus();
}

function receive(view, bytes) {
  const text = new TextDecoder().decode(bytes);
  if (text === view.text) return; // buttons, and what has the focus, stay
  view.text = text;
  const before = view.data;
  view.data = readJson(bytes);
  const { marks, guess, right, words, question } = view.data;
  const isGuessed = Boolean(before) && before.guess === null && guess !== null;
  if (isGuessed) view.choosing = false;
  const hadFocus = view.parts.layer.contains(activeIn(view));
  view.parts.openLabel.textContent = words.open;
  view.parts.layer.setAttribute("aria-label", question);
  view.buttons = marks.map(({ label }, i) => {
    const button = element("button", "mark", { type: "button", role: "radio", "aria-checked": String(i === guess), "aria-label": label, tabindex: i ? "-1" : "0" }, element("span", "", {}, label));
    button.addEventListener("click", () => view.send(i));
    return button;
  });
  view.ring = right === null ? null : element("div", "ring", {});
  view.parts.layer.replaceChildren(...view.buttons, ...(view.ring ? [view.ring] : []));
  view.drawn = "";
  view.moves = view.seeks = isGuessed;
  render(view);
  if (hadFocus) view.parts.open.focus({ preventScroll: true });
}

const activeIn = (view) => view.parts.root.getRootNode().activeElement;

function press(view, event) {
  const at = view.buttons.indexOf(event.target);
  if (event.key === "Escape" && view.choosing) close(view);
  else if (STEPS[event.key] && at >= 0) {
    const next = view.buttons[(at + STEPS[event.key] + view.buttons.length) % view.buttons.length];
    for (const button of view.buttons) button.tabIndex = button === next ? 0 : -1;
    next.focus();
  } else return; // Enter and the space bar click
  event.preventDefault();
  event.stopPropagation();
}

/** The first element that a selector finds in a part of the page, inside components too. */
function within(place, selector) {
  const roots = [place, ...[...place.querySelectorAll("*")].map((node) => node.shadowRoot).filter(Boolean)];
  return roots.map((root) => root.querySelector(selector)).find(Boolean);
}

/** The rectangle in the window that x and y of a mark are shares of: of the element, or of what it says is its area. */
function areaOf(node) {
  const { left, top, width, height } = node.getBoundingClientRect();
  const [x0, y0, x1, y1] = node.dataset.area?.split(" ").map(Number) ?? [0, 0, width, height];
  return { left: left + x0, top: top + y0, width: x1 - x0, height: y1 - y0 };
}

const clamp = (number, low, high) => Math.min(high, Math.max(low, number));

/** Ends of a mark along an axis of plotly, in pixels of the figure, within the axis; null where it is outside. */
function along(axis, ends, isShare, scale) {
  const [start, stop] = [axis._offset, axis._offset + axis._length];
  const pixels = ends.map((end) => (isShare ? start + end * axis._length : axis._offset + axis.d2p(end)));
  const [low, high] = [Math.min(...pixels), Math.max(...pixels)];
  if (high < start || low > stop) return null;
  return [clamp(low, start, stop) * scale, clamp(high, start, stop) * scale];
}

/** The place of a mark in the window; null where it is not drawn. */
function placeOf(figure, { x, y, part, shares }) {
  if (part) {
    const node = within(figure, part);
    if (!node) return null;
    const { left, top, width, height } = areaOf(node);
    return [left + x[0] * width, top + y[0] * height, left + x[1] * width, top + y[1] * height];
  }
  const plot = figure.querySelector(".js-plotly-plot");
  const { xaxis: across, yaxis: down } = plot?._fullLayout ?? {};
  if (!across?._length || !down?._length) return null;
  const box = plot.getBoundingClientRect();
  const scale = box.width / plot.offsetWidth || 1; // it is enlarged while it is presented
  const horizontal = along(across, x, shares.includes("x"), scale);
  const vertical = along(down, y, shares.includes("y"), scale);
  return horizontal && vertical && [box.left + horizontal[0], box.top + vertical[0], box.left + horizontal[1], box.top + vertical[1]];
}

/** The question or verdict is above the figure, or under marks that are far down a high one. */
function render(view) {
  const { parts, data } = view;
  if (!data) return;
  view.width = parts.root.clientWidth;
  const figure = figureOf(view);
  const isHidden = !figure || !isShown(view);
  parts.layer.hidden = parts.note.hidden = isHidden;
  parts.open.setAttribute("aria-expanded", String(view.choosing));
  const text = isRevealed(view) ? data.verdict : data.question;
  if (parts.note.textContent !== text) parts.note.textContent = text; // else it would be read out again
  if (isHidden) {
    makeRoom(view, figure, false);
    return;
  }
  const here = parts.root.getBoundingClientRect();
  const whole = figure.getBoundingClientRect();
  const inWindow = data.marks.map((mark) => placeOf(figure, mark));
  const shows = (i) => inWindow[i] && (!isRevealed(view) || i === data.guess || i === data.right);
  const shown = inWindow.filter((_, i) => shows(i));
  const [highest, lowest] = [Math.min(...shown.map((place) => place[1])), Math.max(...shown.map((place) => place[3]))];
  const isBelow = lowest - whole.top > innerHeight / 2;
  const isAbove = !isBelow;
  if (makeRoom(view, figure, isAbove)) {
    render(view);
    return;
  }
  const places = inWindow.map((place) => place?.map((end, i) => Math.round(end - (i % 2 ? here.top : here.left))));
  const focusable = view.choosing && performance.now() - view.begun < SETTLES && document.activeElement === document.body;
  if (focusable) view.buttons.find((button) => !button.hidden)?.focus({ preventScroll: true });
  const layout = JSON.stringify([places, here.width, whole.left - here.left, whole.top - here.top, view.choosing]);
  if (view.drawn === layout) return;
  view.drawn = layout;
  parts.root.getRootNode().host.dataset.over = data.figure; // who presents it shows both
  parts.layer.classList.toggle("revealed", isRevealed(view));
  view.buttons.forEach((button, i) => {
    button.hidden = !shows(i);
    if (places[i]) put(button, places[i], isRevealed(view) ? SEEN : LEAST);
    const width = places[i] ? Math.max(LEAST, places[i][2] - places[i][0]) : 0;
    button.classList.toggle("narrow", width < ROOMY);
    button.classList.toggle("tall", width >= ROOMY && places[i][3] - places[i][1] >= TALL);
    button.classList.toggle("tight", width < button.firstElementChild.scrollWidth);
  });
  moveRing(view, places);
  parts.note.classList.toggle("below", isBelow);
  Object.assign(parts.note.style, { left: `${whole.left - here.left}px`, maxWidth: `${whole.width}px` });
  parts.note.style.top = `${(isBelow ? lowest : whole.top - GAP) - here.top}px`;
  if (!view.seeks || !places.some(Boolean)) return;
  view.seeks = false;
  bringIntoSight(figure, isAbove ? whole.top : highest, lowest);
  if (view.choosing) view.buttons.find((button) => !button.hidden)?.focus({ preventScroll: true });
}

/** Move the figure down while the question is above it, which would cover what is there; return whether it moves. */
function makeRoom(view, figure, isAbove) {
  const room = isAbove ? `${view.parts.note.offsetHeight + GAP}px` : "";
  if (view.moved && view.moved !== figure) view.moved.style.marginTop = "";
  const isOurs = isAbove || view.moved === figure;
  view.moved = isAbove ? figure : null;
  if (!figure || !isOurs || figure.style.marginTop === room) return false;
  figure.style.marginTop = room;
  return true;
}

function put(node, [left, top, right, bottom], least = SEEN) {
  const [wide, high] = [Math.max(least, right - left), Math.max(least, bottom - top)];
  const [x, y] = [(left + right - wide) / 2, (top + bottom - high) / 2];
  Object.assign(node.style, { left: `${x}px`, top: `${y}px`, width: `${wide}px`, height: `${high}px` });
}

/** The ring is at the truth; just after the guess it starts from there. */
function moveRing(view, places) {
  const { ring, data } = view;
  if (!ring) return;
  ring.hidden = !places[data.right];
  if (ring.hidden) return;
  if (view.moves && places[data.guess]) {
    put(ring, places[data.guess]);
    ring.getBoundingClientRect(); // so that it moves from there
    ring.classList.add("moves");
  }
  view.moves = false;
  put(ring, places[data.right]);
}

export default viewComponent(createView, (view, data, { setTriggerValue }) => {
  view.send = (action) => setTriggerValue("action", action);
  receive(view, data);
}, closeView);
