// Tokens that have a place in a drawing: pointing at one, there or in the text, lights what it attends to, there and in
// the text. What the drawing is of is up to Python, which sends parts (atoms and bonds), a place a token at most.

import { element, fillIn } from "../shared/elements.js";
import { partsOf, readJson, viewComponent } from "../shared/mount.js";
import { listenToTerms, markLit, pointAtTerms } from "../shared/terms.js";

const BOND = 34; // px
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
  const { root } = view.parts;
  root.addEventListener("keydown", (event) => moveBy(view, event));
  for (const event of ["pointerover", "focusin"]) root.addEventListener(event, ({ target }) => pointAtTerms(termsOf(target)));
  for (const event of ["pointerleave", "focusout"]) root.addEventListener(event, () => pointAtTerms([]));
  view.stopTerms = listenToTerms((names) => markLit(root, names));
  return view;
}

/** The side of the drawing that an element belongs to. */
const termsOf = (target) => [target.closest("[data-term]")?.dataset.term].filter(Boolean);

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
    if (place === undefined) return node;
    node.dataset.term = data.terms[Number(place >= data.numKeys)];
    if (!data.drawing) asButton(node, `${data.names[place]} ${token}`);
    listen(view, node, place);
    return node;
  }));
  select(view, data.start);
}

function asButton(node, label) {
  for (const [name, value] of Object.entries({ role: "button", tabindex: "-1", "aria-pressed": "false", "aria-label": label })) node.setAttribute(name, value);
}

function listen(view, node, place) {
  const events = node.hasAttribute("role") ? ["pointerenter", "click", "focus"] : ["pointerenter"]; // keys move in one of both
  for (const event of events) node.addEventListener(event, () => select(view, place));
  view.nodes[place].push(node);
}

function drawAll(view, parts) {
  let place = 0;
  return parts.flatMap((part, i) => {
    const sign = i === 0 ? "" : part.product === parts[i - 1].product ? "+" : "→";
    const first = place;
    place += part.atoms.length;
    return [...(sign ? [element("span", "sign", { "aria-hidden": "true" }, sign)] : []), drawPart(view, part, first)];
  });
}

function drawPart(view, { atoms: inBonds, bonds, product }, first) {
  const atoms = inBonds.map(([x, y, label]) => [x * BOND, y * BOND, label]);
  const xs = atoms.map(([x]) => x), ys = atoms.map(([, y]) => y);
  const [left, top] = [Math.min(...xs) - 30, Math.min(...ys) - 27];
  const [width, height] = [Math.max(...xs) + 30 - left, Math.max(...ys) + 27 - top];
  const lines = bonds.flatMap(([a, b, order]) => linesOf(atoms[a], atoms[b], order));
  const marks = atoms.flatMap((atom, i) => drawPlace(view, atom, first + i, bonds.filter(([a, b]) => a === i || b === i).map(([a, b]) => atoms[a === i ? b : a])));
  return svg("svg", "", { viewBox: `${left} ${top} ${width} ${height}`, width, height, "data-term": view.data.terms[Number(product)] }, ...lines, ...marks);
}

/** The strokes of a bond; they end before a label. */
function linesOf(a, b, order) {
  const length = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1;
  const [dx, dy] = [(b[0] - a[0]) / length, (b[1] - a[1]) / length];
  const [from, to] = [a[2] ? 11.5 : 0, b[2] ? 11.5 : 0];
  const shifts = [[], [0], [-2.7, 2.7], [-4.8, 0, 4.8]][order] ?? [0];
  return shifts.map((s) => svg("line", "bond", { x1: a[0] + dx * from - dy * s, y1: a[1] + dy * from + dx * s, x2: b[0] - dx * to - dy * s, y2: b[1] - dy * to + dx * s }));
}

function drawPlace(view, [x, y, label], place, neighbours) {
  const node = svg("g", "place", {}, svg("circle", "halo", { cx: x, cy: y, r: 14 }), svg("circle", "ring", { cx: x, cy: y, r: 14 }));
  asButton(node, view.data.names[place]);
  node.number = svg("text", "number", { x, y: y - 21, "text-anchor": "middle" });
  const drawn = [node, node.number];
  if (label) {
    const [, symbol, hydrogens = "", charge] = label.match(LABEL) ?? [null, label, "", ""];
    const isLeft = hydrogens && neighbours.reduce((sum, [other]) => sum + other - x, 0) > 3;
    const half = symbol.length > 1 ? 9 : 6;
    const at = isLeft ? { x: x + half, "text-anchor": "end" } : { x: x - half, "text-anchor": "start" };
    drawn.push(svg("text", "", { y, ...at }, isLeft ? hydrogens + symbol + charge : symbol + hydrogens + charge));
  }
  listen(view, node, place);
  return drawn;
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
    node.toggleAttribute("data-read", weights.has(other));
    node.toggleAttribute("data-true", right.has(other));
    node.style.setProperty("--weight", weights.get(other) ?? 0);
    node.toggleAttribute("data-chosen", other === place);
    if (node.hasAttribute("role")) {
      node.setAttribute("aria-pressed", String(other === place));
      node.setAttribute("tabindex", other === place ? "0" : "-1");
    }
    if (node.number) node.number.textContent = weights.get(other) >= 0.1 ? percent.format(weights.get(other)) : "";
  }));
  const text = sentence(view, place, links, right);
  view.parts.say.textContent = text[0].toUpperCase() + text.slice(1);
}

function sentence({ data, percent }, place, links, right) {
  const { words, names, numKeys, truth, language } = data;
  const items = links.slice(0, MOST_NAMED).map(([other, weight]) => fillIn(words.item, { name: names[other], weight: percent.format(weight) }));
  const others = new Intl.ListFormat(language).format(items);
  if (!others) return fillIn(words.nothing, { name: names[place] });
  if (place < numKeys) return fillIn(words.read, { name: names[place], others });
  const best = data.strongest[place - numKeys];
  const known = truth.length && (right.size ? (right.has(best) ? words.right : fillIn(words.wrong, { name: names[[...right][0]] })) : words.unknown);
  return [fillIn(words.attends, { name: names[place], others }), known, right.size > 1 && fillIn(words.alike, { count: right.size })].filter(Boolean).join(language.startsWith("zh") ? "" : " ");
}

const STEPS = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };

function moveBy(view, event) {
  const step = STEPS[event.key];
  if (!step || view.at === null) return;
  event.preventDefault();
  view.nodes[Math.min(view.nodes.length - 1, Math.max(0, view.at + step))][0].focus();
}

export default viewComponent(createView, receive, (view) => view.stopTerms());
