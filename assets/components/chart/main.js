// One chart: its height is reserved from the start; plotly draws it once it is nearly visible, and when it changes. Full
// screen, the drawing moves into a dialog over the page and back, and is never made anew.

import { stageHeight, typeScale } from "../shared/canvas.js";
import { element } from "../shared/elements.js";
import { DRAW_MARGIN, mountView, partsOf, stopWatching, stopWatchingVisibility, watchVisibility, watchWidth } from "../shared/mount.js";
import { fitCells, readChart, saveButton } from "./picture.js";
import { listenForParts, listenForPoints, listenToTraces, offerFocus, showLit } from "./points.js";
import { fitTitles, inTheme, isCornerUsed, reserveMargins, templateOf, themeOf, turnScales } from "./theme.js";

let plotly;

/** What the script at this address, relative to the page, calls Plotly; null where the server gave no answer. */
function loadPlotly(address) {
  plotly ??= new Promise((resolve) => {
    if (globalThis.Plotly) return resolve(globalThis.Plotly);
    const script = onItsWay(address) ?? Object.assign(document.createElement("script"), { src: full(address) });
    script.addEventListener("load", () => resolve(globalThis.Plotly));
    script.addEventListener("error", () => {
      plotly = null; // the next chart tries again
      script.remove();
      console.warn(`no answer from ${script.src}`);
      resolve(null);
    });
    if (!script.isConnected) document.head.append(script);
  });
  return plotly;
}

const full = (address) => String(new URL(address, document.baseURI));

/** The first page of a chapter with charts has begun to read it (ui/app/index_page.py). */
const onItsWay = (address) => document.head.querySelector(`script[src="${full(address)}"]`);

/** Have it fetched in a quiet moment, but not read yet. */
function fetchEarly(address) {
  (globalThis.requestIdleCallback ?? setTimeout)(() => plotly ?? globalThis.Plotly ?? prefetch(address));
}

function prefetch(address) {
  const href = full(address);
  if (onItsWay(address) || document.head.querySelector(`link[href="${href}"]`)) return;
  document.head.append(element("link", "", { rel: "prefetch", href }));
}

const LEAST = 100; // pixels: a narrower chart has nothing but its axes
const AROUND = 70; // of a square: legend and titles
const CORNERS = {
  width: 24,
  height: 24,
  path: "M3 3h6v2.5H5.5V9H3zM15 3h6v6h-2.5V5.5H15zM3 15h2.5v3.5H9V21H3zM18.5 15H21v6h-6v-2.5h3.5z",
};

const wholeButton = (view) => ({
  name: "whole",
  title: view.about.words.whole,
  icon: CORNERS,
  click: () => toggle(view),
});

/** Put the drawing back once the dialog is closed, by the button or by Escape. */
function listenWhole(view) {
  const { root, plot, whole } = view.parts;
  whole.addEventListener("close", () => {
    root.prepend(plot);
    show(view);
  });
}

function toggle(view) {
  const { plot, whole } = view.parts;
  if (whole.open) {
    whole.close();
    return;
  }
  whole.showModal();
  whole.append(plot);
  show(view);
}

async function show(view) {
  await view.render();
  view.parts.plot.querySelector(`.modebar-btn[data-title="${CSS.escape(view.about.words.whole)}"]`)?.focus();
}

const widthOf = (root) => Math.max(root.clientWidth, LEAST);

/** How high its place in the page is, in pixels. */
const placeHeight = ({ parts, about }) =>
  stageHeight(parts.root) ?? (about.square ? Math.min(about.height, widthOf(parts.root) + AROUND) : about.height);

/** How many times larger it is shown than drawn: its type too, where it fills the window. */
const scaleOf = ({ parts }) => (stageHeight(parts.root) === null || parts.whole.open ? 1 : typeScale());

function roomOf({ parts, about }) {
  const { root, whole } = parts;
  const scale = scaleOf({ parts });
  if (!whole.open) return { width: widthOf(root) / scale, height: placeHeight({ parts, about }) / scale };
  const { paddingLeft, paddingTop } = getComputedStyle(whole);
  const inside = (length, padding) => Math.floor(length - 2 * parseFloat(padding));
  return { width: inside(whole.clientWidth, paddingLeft), height: inside(whole.clientHeight, paddingTop) };
}

const views = new WeakMap();
const tasks = new WeakMap(); // the last task of each plot
// Plotly's labels, and the names of their translations.
const WORDS = {
  Zoom: "part", Pan: "move", "Zoom in": "nearer", "Zoom out": "farther", Autoscale: "fit", "Reset axes": "first",
  "Double-click on legend to isolate one trace": "alone", "Double-click to zoom back out": "all",
};
const TOUCH = matchMedia("(hover: none)").matches;

function createView(parent) {
  const view = { parts: partsOf(parent), bytes: null, drawn: null, config: null };
  view.render = () => render(view);
  release(view.parts.root.closest(".stElementContainer"));
  listenWhole(view);
  listenForParts(view, enqueue);
  listenForPoints(view);
  watchWidth(view, render);
  watchVisibility(view, render, DRAW_MARGIN);
  return view;
}

/** Let its place be as high as it is: until the script was there, Streamlit reserved the figure's height, in a box that scrolls. */
function release(/** @type {HTMLElement | null} */ place) {
  if (!place) return; // on a page without a server
  const isRow = getComputedStyle(place.parentElement).flexDirection === "row";
  Object.assign(place.style, { height: "auto", overflow: "visible" }, isRow ? {} : { flexBasis: "auto" });
}

function closeView(view) {
  stopWatching(view);
  stopWatchingVisibility(view);
  view.stopTerms();
  view.bytes = null;
  enqueue(view.parts.plot, purge);
}

/** Run a task once plotly has finished the previous ones on this plot: it draws for a while after each call. */
function enqueue(plot, task) {
  const turn = (tasks.get(plot) ?? Promise.resolve()).then(() => task(plot));
  tasks.set(plot, turn.catch(() => {}));
  return turn;
}

function purge(plot) {
  globalThis.Plotly?.purge(plot);
  plot.emit = () => {}; // plotly's timers may still fire, and a purged plot has no events
}

/** Take a figure: its label and its height are there at once. */
function receive(view, bytes) {
  const { root } = view.parts;
  const { about, data, layout } = readChart(bytes);
  if (view.about?.words.save !== about.words.save) view.config = null; // another language needs new buttons
  Object.assign(view, { bytes, about });
  root.setAttribute("aria-label", about.alt);
  root.classList.toggle("clickable", about.clickable);
  root.classList.toggle("headed", TOUCH && about.bar && isCornerUsed(data, layout, widthOf(root), themeOf(root).font));
  root.style.height = `${placeHeight(view)}px`;
  fetchEarly(about.plotly);
  return render(view);
}

/** Draw the chart if it is nearly visible and has changed. */
async function render(view) {
  const { root } = view.parts;
  view.width = root.clientWidth;
  if (!canDraw(view)) return;
  const plotly = await loadPlotly(view.about.plotly);
  if (!view.drawn) await ownFrame();
  if (plotly) await enqueue(view.parts.plot, () => update(view, plotly)); // else only its height and label remain
}

let frame = Promise.resolve(); // in which the next new chart may be drawn

/** Wait for a frame without another new chart: what is drawn first is seen before the others are ready. */
function ownFrame() {
  const own = frame;
  frame = own.then(nextFrame);
  return own;
}

/** Once it is painted; a page in the background has no frames. */
const nextFrame = () =>
  new Promise((resolve) => (document.hidden ? resolve() : requestAnimationFrame(() => setTimeout(resolve))));

async function update(view, plotly) {
  const { root } = view.parts;
  if (!canDraw(view)) return;
  const theme = themeOf(root);
  const room = roomOf(view);
  root.style.height = `${placeHeight(view)}px`;
  view.parts.plot.style.scale = scaleOf(view);
  const style = JSON.stringify([theme, room]);
  if (view.drawn?.style === style && same(view.drawn.bytes, view.bytes)) return;
  view.drawn = { bytes: view.bytes, style };
  await draw(view, plotly, { ...room, template: templateOf(theme) }, theme);
  Object.assign(view, { usual: null, dimmed: false });
  offerFocus(view);
  if (view.lit?.length) showLit(view, enqueue);
  root.dataset.drawn = true; // for tests
}

const canDraw = (view) => view.visible && view.bytes && view.width;

const same = (a, b) => a.length === b.length && a.every((byte, i) => byte === b[i]);

async function draw(view, plotly, size, theme) {
  const { plot } = view.parts;
  const { about, ...figure } = readChart(view.bytes);
  const { data, layout, frames } = inTheme(figure, theme);
  Object.assign(layout, size);
  fitTitles(data, layout, theme.font);
  turnScales(data, layout);
  reserveMargins(data, layout, theme.font);
  // A finger scrolls the page; a mouse selects the part to enlarge.
  if (TOUCH) layout.dragmode ??= false;
  if (about.clickable) {
    layout.hovermode ??= "closest";
    layout.dragmode ??= "pan";
  }
  const first = !view.config;
  view.config ??= configOf(view); // the same object each time, or plotly starts again
  const whole = { data, layout, frames: frames.length ? frames : undefined, config: view.config };
  await plotly.react(plot, whole);
  if (fitCells(data, plot._fullLayout, theme.font)) await plotly.react(plot, whole);
  if (first) listenToTraces(view);
  if (first && about.clickable) plot.on("plotly_click", ({ points }) => view.sendClick(points[0]));
}

function configOf(view) {
  const { about } = view;
  const dictionary = Object.fromEntries(Object.entries(WORDS).map(([label, name]) => [label, about.words[name]]));
  const config = {
    locale: "ours",
    locales: { ours: { dictionary } },
    displaylogo: false,
    displayModeBar: about.bar ? "hover" : false,
  };
  // Touch screens have no hover: the buttons are always visible, so there are few.
  const own = [saveButton(view), wholeButton(view)];
  if (TOUCH) return { ...config, modeBarButtons: [own] };
  return { ...config, modeBarButtonsToRemove: ["lasso2d", "select2d", "toImage", "sendChartToCloud"], modeBarButtonsToAdd: own };
}

export default async function (component) {
  const { data, setTriggerValue } = component;
  if (!data) return undefined;
  const { view, unmount } = mountView(views, component, createView, closeView);
  view.sendClick = ({ x, y, customdata }) => {
    setTriggerValue("click", { x, y, customdata: ArrayBuffer.isView(customdata) ? [...customdata] : customdata });
  };
  await receive(view, data);
  return unmount;
}
