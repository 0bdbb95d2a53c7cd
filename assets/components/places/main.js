// Tokens that have a place in a drawing: pointing at one, there or in the text, lights what it attends to, there and in
// the text. What the drawing is of is up to Python (viz_core/lab/places.py), which sends panels and places.

import { element, fillIn } from "../shared/elements.js";
import { partsOf, readJson, viewComponent } from "../shared/mount.js";
import { listenToFigures, listenToTerms, pointAtTerms } from "../shared/terms.js";

const LEAST = 0.02; // weight that is lit
const MOST_NAMED = 3;

const svg = (tag, className, attributes = {}, ...children) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  node.setAttribute("class", className);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
};

function createView(parent) {
  const view = { parts: partsOf(parent), at: null, held: null };
  const { root, mask } = view.parts;
  root.addEventListener("keydown", (event) => moveBy(view, event));
  root.addEventListener("click", ({ target }) => hold(view, target));
  mask.addEventListener("click", () => view.send?.("mask", view.at));
  for (const event of ["pointerover", "focusin"]) root.addEventListener(event, ({ target }) => pointAtTerms(termsOf(target)));
  for (const event of ["pointerleave", "focusout"]) root.addEventListener(event, () => pointAtTerms([]));
  const stopRows = listenToFigures((names) => chooseRow(view, names));
  const stopTerms = listenToTerms((names) => root.querySelectorAll("[data-term]").forEach((node) => node.toggleAttribute("data-lit", names.includes(node.dataset.term))));
  view.stop = () => [stopRows, stopTerms].forEach((stop) => stop());
  return view;
}

function chooseRow(view, names) {
  const row = names.find((name) => name.startsWith("row-"));
  const { places, firstRow } = view.data ?? {};
  if (!row || view.held !== null || typeof firstRow !== "number") return;
  const place = places.findIndex(({ token }) => token === Number(row.slice("row-".length)) - firstRow);
  if (place >= 0) select(view, place);
}

/** Hold a place until it is clicked again, or what is no place. */
function hold(view, target) {
  const node = target.closest("[data-place]");
  if (!node) {
    if (!target.closest("button")) view.held = null;
    return;
  }
  const place = Number(node.dataset.place);
  view.held = view.held === place ? null : place;
  select(view, place);
}

/** The side of the drawing that an element belongs to. */
const termsOf = (target) => [target.closest("[data-term]")?.dataset.term].filter(Boolean);

function receive(view, bytes, { setTriggerValue }) {
  view.send = setTriggerValue;
  const text = new TextDecoder().decode(bytes);
  if (text === view.text) return;
  view.text = text;
  const data = (view.data = readJson(bytes));
  view.percent = new Intl.NumberFormat(data.language, { style: "percent", maximumFractionDigits: 0 });
  view.nodes = data.places.map(() => []); // of each place: in the drawing, in the text
  const { drawing, tokens, say, root } = view.parts;
  root.setAttribute("aria-label", data.words.label);
  drawing.replaceChildren(...data.panels.flatMap((panel, i) => drawPanel(view, panel, i)));
  tokens.classList.toggle("large", !data.panels.length);
  tokens.hidden = !data.tokens.length;
  const places = new Map(data.places.map(({ token }, place) => [token, place]));
  tokens.replaceChildren(...data.tokens.flatMap((token, i) => drawToken(view, token, places.get(i))));
  say.hidden = data.start === null;
  if (view.held >= data.places.length) view.held = null;
  if (data.start !== null) select(view, view.held ?? data.start); // held, where it has just been masked
  drawing.dataset.drawn = true; // for tests and benches
}

function drawToken(view, token, place) {
  const { places, panels, terms, numKeys, round } = view.data;
  const node = element("span", place === undefined ? "token" : round ? "token placed" : "token placed word", {}, token);
  if (place === undefined) return [node];
  const { name, boxes } = places[place];
  if (terms.length) node.dataset.term = terms[Number(place >= numKeys)];
  if (!boxes.length || !panels.length) asButton(node, name === token ? name : `${name} ${token}`);
  listen(view, node, place);
  return round ? [node] : [node, " "];
}

function asButton(node, label) {
  for (const [name, value] of Object.entries({ role: "button", tabindex: "-1", "aria-pressed": "false", "aria-label": label })) node.setAttribute(name, value);
}

function listen(view, node, place) {
  node.addEventListener("pointerenter", () => view.held === null && select(view, place));
  node.dataset.place = place;
  if (node.hasAttribute("role")) node.addEventListener("focus", () => select(view, place)); // keys move in one of both
  node.toggleAttribute("data-masked", view.data.places[place].masked);
  view.nodes[place].push(node);
}

function drawPanel(view, { box: [left, top, width, height], strokes, labels, picture, inked, sign, term }, number) {
  const image = picture && svg("image", "", { href: picture, x: left, y: top, width, height, preserveAspectRatio: "none" });
  const mask = svg("mask", "", { id: `ink${number}` }, ...(inked && image ? [image] : []));
  const under = inked ? [mask, svg("rect", "ink", { x: left, y: top, width, height, mask: `url(#ink${number})` })] : [image].filter(Boolean);
  const marks = view.data.places.flatMap(({ boxes }, place) => boxes.flatMap((each, i) => (each[0] === number ? drawPlace(view, each, place, i === 0) : [])));
  const texts = labels.map(([x, y, text, anchor]) => svg("text", "", { x, y, "text-anchor": anchor }, text));
  const panel = svg("svg", view.data.round ? "panel" : "panel fine", { style: `--width: ${width}px`, viewBox: `${left} ${top} ${width} ${height}`, width, height, ...(term && { "data-term": term }) }, ...under, svg("path", "strokes", { d: strokes }), ...marks, ...texts);
  return [...(sign ? [element("span", "sign", { "aria-hidden": "true" }, sign)] : []), panel];
}

/** The first box of a place is its button. */
function drawPlace(view, [, x, y, width, height], place, isFirst) {
  const { round, places, unclear, numKeys } = view.data;
  const corners = { x, y, width, height, rx: round ? width / 2 : 0 };
  const node = svg("g", "place", {}, svg("rect", "halo", corners), svg("rect", "ring", corners));
  if (isFirst) asButton(node, places[place].name);
  const drawn = [node];
  if (places[place].masked) drawn.push(svg("text", "masked", { x: x + width / 2, y: y + height / 2, "text-anchor": "middle" }, "×"));
  if (unclear[place - numKeys] >= 0) drawn.push(svg("text", "unclear", { x: x + width - 1, y: y + 3, "text-anchor": "middle" }, "?"));
  if (round) drawn.push((node.number = svg("text", "number", { x: x + width / 2, y: y - 7, "text-anchor": "middle" })));
  listen(view, node, place);
  return drawn;
}

/** What a place attends to, or what attends to it, largest first. */
function linksOf({ weights, numKeys, relative }, place) {
  const isQuery = place >= numKeys;
  const row = isQuery ? weights[place - numKeys].map((weight, key) => [key, weight]) : weights.map((keys, query) => [query + numKeys, keys[place]]);
  const most = relative ? Math.max(...row.map(([, weight]) => weight)) : 1;
  return row.filter(([, weight]) => weight >= LEAST * most && weight > 0).sort((a, b) => b[1] - a[1]);
}

function select(view, place) {
  if (view.at === place && view.shown === view.text) return;
  Object.assign(view, { at: place, shown: view.text });
  const { data, nodes, percent } = view;
  const links = linksOf(data, place);
  const right = new Set(place >= data.numKeys ? data.truth[place - data.numKeys] : []);
  const weights = new Map(links);
  const most = data.relative ? links[0]?.[1] : 1;
  view.parts.root.style.setProperty("--chosen", place < data.numKeys ? "var(--keys)" : "var(--queries)");
  nodes.forEach((each, other) => each.forEach((node) => {
    node.toggleAttribute("data-read", weights.has(other));
    node.toggleAttribute("data-true", right.has(other));
    node.style.setProperty("--weight", (weights.get(other) ?? 0) / most || 0);
    node.toggleAttribute("data-chosen", other === place);
    if (node.hasAttribute("role")) {
      node.setAttribute("aria-pressed", String(other === place));
      node.setAttribute("tabindex", other === place ? "0" : "-1");
    }
    if (node.number) node.number.textContent = weights.get(other) >= 0.1 ? percent.format(weights.get(other)) : "";
  }));
  const text = sentence(view, place, links, right);
  view.parts.say.textContent = text[0].toUpperCase() + text.slice(1);
  const { mask } = view.parts;
  mask.hidden = !data.words.mask || place >= data.numKeys;
  mask.textContent = fillIn(data.words[data.places[place].masked ? "unmask" : "mask"] ?? "", { name: data.places[place].name });
}

function sentence({ data, percent }, place, links, right) {
  const { words, numKeys, truth, language } = data;
  const names = data.places.map(({ name }) => name);
  const items = links.slice(0, MOST_NAMED).map(([other, weight]) => fillIn(words.item, { name: names[other], weight: percent.format(weight) }));
  const others = new Intl.ListFormat(language).format(items);
  if (data.places[place].masked) return fillIn(words.masked, { name: names[place] });
  if (!others) return fillIn(words.nothing, { name: names[place] });
  if (place < numKeys) return fillIn(words.read, { name: names[place], others });
  const best = data.strongest[place - numKeys], near = data.unclear[place - numKeys];
  const known = truth.length > 0 && (right.size ? (right.has(best) ? words.right : fillIn(words.wrong, { name: names[[...right][0]] })) : words.unknown);
  return [fillIn(words.attends, { name: names[place], others }), known, near >= 0 && fillIn(words.unclear, { name: names[near], weight: percent.format(data.weights[place - numKeys][near]) }), right.size > 1 && fillIn(words.alike, { count: right.size })].filter(Boolean).join(language.startsWith("zh") ? "" : " ");
}

const STEPS = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };

function moveBy(view, event) {
  const step = STEPS[event.key];
  if (!step || view.at === null) return;
  event.preventDefault();
  view.nodes[Math.min(view.nodes.length - 1, Math.max(0, view.at + step))][0].focus();
}

export default viewComponent(createView, receive, (view) => view.stop());
