// Tokens that have a place in a drawing: pointing at one, there or in the text, lights what it attends to, there and in
// the text. What the drawing is of is up to Python, which sends parts (atoms and bonds), a place a token at most.

import { element, fillIn } from "../shared/elements.js";
import { partsOf, readJson, viewComponent } from "../shared/mount.js";

const SCALE = 30; // px of a bond
const LEAST = 0.02; // weight that is lit
const MOST_NAMED = 3;
const LABEL = /^([A-Z*][a-z]?)(H[₀-₉]*)?(.*)$/;

const svg = (tag, className, attributes = {}, ...children) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  node.setAttribute("class", className);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
};

function createView(parent) {
  const view = { parts: partsOf(parent), at: null };
  view.parts.root.addEventListener("keydown", (event) => moveBy(view, event));
  return view;
}

function receive(view, bytes) {
  const text = new TextDecoder().decode(bytes);
  if (text === view.text) return;
  view.text = text;
  const data = (view.data = readJson(bytes));
  view.percent = new Intl.NumberFormat(data.language, { style: "percent", maximumFractionDigits: 0 });
  view.nodes = data.places.map(() => []); // of each place: in the drawing, in the text
  const { drawing, tokens, root } = view.parts;
  root.setAttribute("aria-label", data.words.label);
  drawing.replaceChildren(...drawAll(view, data.drawing ?? []));
  tokens.classList.toggle("large", !data.drawing);
  const places = new Map(data.places.map((token, place) => [token, place]));
  tokens.replaceChildren(...data.tokens.map((token, i) => {
    const place = places.get(i);
    const node = element("span", place === undefined ? "token" : "token atom", {}, token);
    if (place !== undefined) listen(view, node, place);
    return node;
  }));
  select(view, data.start);
}

function listen(view, node, place) {
  for (const event of ["pointerenter", "click", "focus"]) node.addEventListener(event, () => select(view, place));
  view.nodes[place].push(node);
}

function drawAll(view, parts) {
  let place = 0;
  return parts.flatMap((part, i) => {
    const sign = i === 0 ? "" : part.second === parts[i - 1].second ? "+" : "→";
    const first = place;
    place += part.atoms.length;
    return [...(sign ? [element("span", "sign", { "aria-hidden": "true" }, sign)] : []), drawPart(view, part, first)];
  });
}

function drawPart(view, { atoms, bonds }, first) {
  const xs = atoms.map(([x]) => x), ys = atoms.map(([, y]) => y);
  const [left, top] = [Math.min(...xs) - 0.9, Math.min(...ys) - 0.8];
  const [width, height] = [Math.max(...xs) + 0.9 - left, Math.max(...ys) + 0.8 - top];
  const lines = bonds.flatMap(([a, b, order]) => linesOf(atoms[a], atoms[b], order));
  const marks = atoms.map((atom, i) => drawPlace(view, atom, first + i, bonds.filter(([a, b]) => a === i || b === i).map(([a, b]) => atoms[a === i ? b : a])));
  return svg("svg", "", { viewBox: `${left} ${top} ${width} ${height}`, width: width * SCALE, height: height * SCALE }, ...lines, ...marks);
}

/** The strokes of a bond; they end before a label. */
function linesOf(a, b, order) {
  const length = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1;
  const [dx, dy] = [(b[0] - a[0]) / length, (b[1] - a[1]) / length];
  const [from, to] = [a[2] ? 0.34 : 0, b[2] ? 0.34 : 0];
  const shifts = [[], [0], [-0.08, 0.08], [-0.14, 0, 0.14]][order] ?? [0];
  return shifts.map((s) => svg("line", "bond", { x1: a[0] + dx * from - dy * s, y1: a[1] + dy * from + dx * s, x2: b[0] - dx * to - dy * s, y2: b[1] - dy * to + dx * s }));
}

function drawPlace(view, [x, y, label], place, neighbours) {
  const node = svg("g", "place", { role: "button", tabindex: "-1", "aria-pressed": "false", "aria-label": view.data.names[place] });
  node.append(svg("circle", "halo", { cx: x, cy: y, r: 0.42 }), svg("circle", "ring", { cx: x, cy: y, r: 0.42 }));
  if (label) {
    const [, symbol, hydrogens = "", charge] = label.match(LABEL) ?? [null, label, "", ""];
    const isLeft = hydrogens && neighbours.reduce((sum, [other]) => sum + other - x, 0) > 0.1;
    const half = symbol.length > 1 ? 0.27 : 0.18;
    const at = isLeft ? { x: x + half, "text-anchor": "end" } : { x: x - half, "text-anchor": "start" };
    node.append(svg("text", "", { y, ...at }, isLeft ? hydrogens + symbol + charge : symbol + hydrogens + charge));
  }
  node.append(svg("text", "number", { x, y: y - 0.62, "text-anchor": "middle" }));
  listen(view, node, place);
  return node;
}

/** What a place attends to, or what attends to it, largest first. */
function linksOf({ weights, numKeys }, place) {
  const isQuery = place >= numKeys;
  const row = isQuery ? weights[place - numKeys].map((weight, key) => [key, weight]) : weights.map((keys, query) => [query + numKeys, keys[place]]);
  return row.filter(([, weight]) => weight >= LEAST).sort((a, b) => b[1] - a[1]);
}

function select(view, place) {
  if (view.at === place && view.shown === view.text) return;
  Object.assign(view, { at: place, shown: view.text });
  const { data, nodes, percent } = view;
  const links = linksOf(data, place);
  const right = new Set(place >= data.numKeys ? data.truth[place - data.numKeys] : []);
  const weights = new Map(links);
  nodes.forEach((each, other) => each.forEach((node) => {
    node.toggleAttribute("data-lit", weights.has(other));
    node.toggleAttribute("data-true", right.has(other));
    node.style.setProperty("--weight", weights.get(other) ?? 0);
    node.setAttribute("aria-pressed", String(other === place));
    if (node.classList.contains("place")) {
      node.setAttribute("tabindex", other === place ? "0" : "-1");
      node.querySelector(".number").textContent = weights.get(other) >= 0.1 ? percent.format(weights.get(other)) : "";
    }
  }));
  view.parts.say.textContent = sentence(view, place, links, right);
}

function sentence({ data, percent }, place, links, right) {
  const { words, names, numKeys, truth } = data;
  const others = links.slice(0, MOST_NAMED).map(([other, weight]) => fillIn(words.item, { name: names[other], weight: percent.format(weight) })).join(words.comma);
  if (!others) return fillIn(words.nothing, { name: names[place] });
  if (place < numKeys) return fillIn(words.read, { name: names[place], others });
  const best = data.strongest[place - numKeys];
  const known = truth.length && (right.size ? (right.has(best) ? words.right : fillIn(words.wrong, { name: names[[...right][0]] })) : words.unknown);
  return [fillIn(words.attends, { name: names[place], others }), known, right.size > 1 && fillIn(words.alike, { count: right.size })].filter(Boolean).join(" ");
}

const STEPS = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };

function moveBy(view, event) {
  const step = STEPS[event.key];
  if (!step || view.at === null) return;
  event.preventDefault();
  view.nodes[Math.min(view.nodes.length - 1, Math.max(0, view.at + step))][0].focus();
}

export default viewComponent(createView, receive);
