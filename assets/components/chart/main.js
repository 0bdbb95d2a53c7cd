// One chart: its height is reserved from the start; plotly draws it once it is nearly visible, and when it changes.

import { mountView, partsOf, stopWatching, watchWidth } from "../shared/mount.js";
import { fetchEarly, loadPlotly } from "./bundle.js";
import { fitCells } from "./cells.js";
import { DRAW_MARGIN, stopWatchingVisibility, watchVisibility } from "../shared/visibility.js";
import { listenForParts, listenToTraces, offerFocus, showLit } from "./parts.js";
import { readChart } from "./payload.js";
import { saveButton } from "./picture.js";
import { listenForPoints } from "./points.js";
import { inTheme, templateOf, themeOf } from "./theme.js";
import { fitTitles, turnScales } from "./titles.js";
import { listenWhole, placeHeight, roomOf, scaleOf, wholeButton } from "./whole.js";

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
  listenWhole(view);
  listenForParts(view, enqueue);
  listenForPoints(view);
  watchWidth(view, render);
  watchVisibility(view, render, DRAW_MARGIN);
  return view;
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
  const { about } = readChart(bytes);
  if (view.about?.words.save !== about.words.save) view.config = null; // another language needs new buttons
  Object.assign(view, { bytes, about });
  root.setAttribute("aria-label", about.alt);
  root.classList.toggle("clickable", about.clickable);
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
  if (plotly) await enqueue(view.parts.plot, () => update(view, plotly)); // else only its height and label remain
}

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
