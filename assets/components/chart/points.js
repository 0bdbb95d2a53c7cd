// The points of a chart that can be clicked, by keys: up and down go to the next higher and lower point, Enter clicks it.

const LABEL_DELAY = 100; // milliseconds; where keys come fast, plotly draws a label 50 after the last
const STEPS = { ArrowUp: 1, ArrowDown: -1 };

/** Points that can be clicked, the lowest first; those of equal height from left to right. */
function pointsOf({ parts, about }) {
  const traces = about?.clickable ? (parts.plot.data ?? []) : [];
  const points = traces.flatMap(({ type = "scatter", mode, x, y, customdata }, curve) =>
    type === "scatter" && mode?.includes("markers") && customdata
      ? Array.from(y, (height, index) => ({ curve, index, x: x[index], y: height, customdata: customdata[index] }))
      : [],
  );
  return points.filter((point) => Number.isFinite(point.x) && Number.isFinite(point.y)).sort((a, b) => a.y - b.y || a.x - b.x);
}

export const hasPoints = (view) => pointsOf(view).length > 0;

export function listenForPoints(view) {
  const { root } = view.parts;
  root.addEventListener("keydown", (event) => press(view, event));
  root.addEventListener("focusout", () => leave(view));
}

function press(view, event) {
  const { root, plot } = view.parts;
  const step = STEPS[event.key];
  const points = event.target === root && (step || event.key === "Enter") ? pointsOf(view) : [];
  if (!points.length) return;
  const place = points.findIndex(({ curve, index }) => curve === view.at?.curve && index === view.at?.index);
  if (!step) {
    if (place < 0) return;
    event.preventDefault();
    view.sendClick(points[place]);
    return;
  }
  event.preventDefault();
  const next = place < 0 && step < 0 ? points.length - 1 : Math.min(Math.max(place + step, 0), points.length - 1);
  view.at = points[next];
  globalThis.Plotly.Fx.hover(plot, [{ curveNumber: view.at.curve, pointNumber: view.at.index }]);
  clearTimeout(view.announcing);
  view.announcing = setTimeout(() => announce(view), LABEL_DELAY);
}

/** Announce the label of the point that the keys are at. */
function announce({ at, parts: { plot, announcement } }) {
  const labels = at ? [...plot.querySelectorAll(".hoverlayer .hovertext text.nums")] : [];
  announcement.textContent = labels.map(linesOf).join("; ");
}

/** The lines of a label that plotly has drawn. */
const linesOf = (text) => {
  const lines = [...text.querySelectorAll("tspan.line")];
  return lines.length ? lines.map((line) => line.textContent).join(", ") : text.textContent;
};

function leave(view) {
  if (!view.at) return;
  view.at = null;
  view.parts.announcement.textContent = "";
  globalThis.Plotly?.Fx.unhover(view.parts.plot);
}
