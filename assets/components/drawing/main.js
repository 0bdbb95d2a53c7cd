// A sheet to draw on by mouse, pen, finger or keys. Python receives the drawing as a PNG when a stroke ends.

import { button, element } from "../shared/elements.js";
import { partsOf, viewComponent } from "../shared/mount.js";

const SIDE = 280; // as in the markup
const SIZES = [10, 26, 54];
const SHADES = ["#202020", "#707070", "#b8b8b8", "#ffffff"]; // the last one erases
const STEP = 7; // pixels of a press of an arrow key

function createView(parent) {
  const parts = partsOf(parent);
  const view = { parts, size: SIZES[1], shade: SHADES[0], strokes: [], stroke: null, pen: [SIDE / 2, SIDE / 2], down: false };
  const { paper, undo, clear } = parts;
  const place = (event) => {
    const box = paper.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * SIDE, ((event.clientY - box.top) / box.height) * SIDE];
  };
  paper.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    paper.setPointerCapture(event.pointerId);
    begin(view, place(event));
  });
  paper.addEventListener("pointermove", (event) => view.stroke && !view.down && extend(view, place(event)));
  for (const name of ["pointerup", "pointercancel"]) paper.addEventListener(name, () => view.stroke && !view.down && end(view));
  paper.addEventListener("keydown", (event) => drawByKeys(view, event));
  paper.addEventListener("blur", () => {
    if (view.down) lift(view);
    draw(view);
  });
  paper.addEventListener("focus", () => draw(view));
  undo.addEventListener("click", () => {
    view.strokes.pop();
    send(view);
  });
  clear.addEventListener("click", () => {
    view.strokes = [];
    send(view);
  });
  return view;
}

function begin(view, point) {
  view.stroke = { size: view.size, shade: view.shade, points: [point] };
  view.strokes.push(view.stroke);
  draw(view);
}

function extend(view, point) {
  view.stroke.points.push(point);
  draw(view);
}

function end(view) {
  view.stroke = null;
  send(view);
}

function lift(view) {
  view.down = false;
  end(view);
}

function drawByKeys(view, event) {
  const far = event.shiftKey ? 3 * STEP : STEP;
  const step = { ArrowLeft: [-far, 0], ArrowRight: [far, 0], ArrowUp: [0, -far], ArrowDown: [0, far] }[event.key];
  if (step) {
    view.pen = view.pen.map((at, i) => Math.max(0, Math.min(SIDE, at + step[i])));
    if (view.down) extend(view, [...view.pen]);
    else draw(view);
  } else if (event.key === " " || event.key === "Enter") {
    if (view.down) lift(view);
    else {
      view.down = true;
      begin(view, [...view.pen]);
    }
    view.parts.live.textContent = view.words[view.down ? "down" : "up"];
  } else if (event.key === "z" && (event.ctrlKey || event.metaKey)) {
    view.strokes.pop();
    send(view);
  } else return;
  event.preventDefault();
  event.stopPropagation();
}

function paintStrokes(context, strokes) {
  context.fillStyle = "#ffffff";
  context.fillRect(0, 0, SIDE, SIDE);
  context.lineCap = context.lineJoin = "round";
  for (const { size, shade, points } of strokes) {
    context.strokeStyle = shade;
    context.lineWidth = size;
    context.beginPath();
    context.moveTo(...points[0]);
    for (const point of points) context.lineTo(...point);
    context.stroke();
  }
}

function draw(view) {
  const { paper, undo, clear } = view.parts;
  const context = paper.getContext("2d");
  paintStrokes(context, view.strokes);
  undo.disabled = clear.disabled = !view.strokes.length;
  if (!paper.matches(":focus-visible")) return;
  const [x, y] = view.pen;
  context.strokeStyle = view.down ? "#d55e00" : "#0072b2";
  context.lineWidth = 2;
  context.beginPath();
  context.arc(x, y, view.size / 2 + 2, 0, 2 * Math.PI);
  context.stroke();
}

function send(view) {
  draw(view);
  const sheet = document.createElement("canvas");
  sheet.width = sheet.height = SIDE;
  paintStrokes(sheet.getContext("2d"), view.strokes);
  view.setStateValue("drawing", view.strokes.length ? sheet.toDataURL("image/png") : "");
}

function choose(part, label, options, current, show, pick) {
  part.setAttribute("aria-label", label);
  part.replaceChildren(
    ...options.map((option, i) => {
      const { name, mark } = show(option, i);
      return button("", mark, () => pick(option), { "aria-pressed": option === current, "aria-label": name, title: name });
    }),
  );
}

function render(view) {
  const { parts, words } = view;
  parts.paper.setAttribute("aria-label", words.paper);
  parts.undo.textContent = words.undo;
  parts.clear.textContent = words.clear;
  parts.hint.textContent = words.hint;
  const dot = (size, i) => ({ name: `${words.size} ${size}`, mark: element("span", "dot", { style: `width: ${4 + 6 * i}px; height: ${4 + 6 * i}px` }) });
  const shade = (colour, i) => ({ name: [words.dark, words.middle, words.light, words.rub][i], mark: element("span", "shade", { style: `background: ${colour}` }) });
  const pick = (name) => (value) => {
    view[name] = value;
    render(view);
  };
  choose(parts.sizes, words.size, SIZES, view.size, dot, pick("size"));
  choose(parts.shades, words.shade, SHADES, view.shade, shade, pick("shade"));
  draw(view);
}

export default viewComponent(createView, (view, data, { setStateValue }) => {
  Object.assign(view, { setStateValue, words: data });
  if (!view.stroke) render(view);
});
