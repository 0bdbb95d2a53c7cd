// The page of the relative projection: one pair on its circle, and the proof with the reader's numbers.

import { element } from "./components/shared/elements.js";
import { ACCENT, COLOURS, draw, drawAtWidth } from "./figures.js";
import { angularFrequencies, moved, POSITIONS, projectionResidual, proofLines, rotationSpread, roundingBound } from "./formulas.js";
import { bindControls, keepSite, readPage, renderClaim } from "./page.js";

const page = readPage();
const { data, words, part } = page;
const { width, base } = data;
const omegas = angularFrequencies(width, base);
const [QUERIES, KEYS] = COLOURS;

function show({ offset, position, pair }) {
  const omega = omegas[pair];
  const turn = offset * omega;
  const point = (at) => [Math.sin(at * omega), Math.cos(at * omega)];
  const written = (values) => `(${values.map((value) => page.decimals(value, 4)).join(words.decimal === "," ? "; " : ", ")})`;
  const about = {
    pair, position, end: page.digits(position + offset), last: width / 2 - 1, degrees: page.decimals((turn * 180) / Math.PI, 1),
    turns: page.decimals(turn / (2 * Math.PI), 3), wavelength: page.decimals((2 * Math.PI) / omega, 2),
    start: written(point(position)), arrived: written(point(position + offset)),
  };
  part("circle").setAttribute("aria-label", words.text("alt.rotation", about));
  drawCircle({ position, offset, pair, point, rotated: moved(offset, position, omega), turn, about });
  const bound = roundingBound(position + Math.abs(offset));
  for (const { name, numbers, result, residual } of proofLines(offset, position, pair, width, base)) {
    const factor = (value) => (name !== "product" && value < 0 ? `(${page.decimals(value, 4)})` : page.decimals(value, 4));
    const filled = Object.fromEntries(Object.entries(numbers).map(([key, value]) => [key, factor(value)]));
    [filled.sine, filled.cosine] = result.map((value) => page.decimals(value, 4));
    for (const node of part(`numbers-${name}`).querySelectorAll("[data-number]")) node.textContent = filled[node.dataset.number];
    const values = { low: 2 * pair, high: 2 * pair + 1, arrived: page.digits(position + offset) };
    renderClaim(part(`claim-proof-${name}`), page, words.text(`claim.proof-${name}`, values), residual, bound);
  }
  const all = roundingBound(POSITIONS + Math.abs(offset));
  const count = { count: page.digits(POSITIONS) };
  renderClaim(part("claim-moves"), page, words.text("claim.moves", count), projectionResidual(offset, width, base), all);
  renderClaim(part("claim-constant"), page, words.text("claim.constant", count), rotationSpread(offset, width, base), all);
}

/** p_i, the turn and p_(i + offset) on the unit circle; across is the sine, up the cosine. */
function drawCircle({ position, offset, pair, point, rotated, turn, about }) {
  drawAtWidth(part("circle"), (given) => {
    const size = Math.min(given, 460);
    const radius = Math.max(1, size / 2 - 58);
    const at = ([sine, cosine], scale = 1) => [size / 2 + scale * radius * sine, size / 2 - scale * radius * cosine];
    const line = (from, to, attributes) => draw("line", { x1: from[0], y1: from[1], x2: to[0], y2: to[1], ...attributes });
    const svg = draw("svg", { width: size, height: size, viewBox: `0 0 ${size} ${size}`, class: "circle", "aria-hidden": true });
    svg.append(draw("circle", { cx: size / 2, cy: size / 2, r: radius, class: "grid", fill: "none" }), line(at([-1, 0]), at([1, 0]), { class: "grid" }), line(at([0, -1]), at([0, 1]), { class: "grid" }));
    const places = Array.from({ length: Math.abs(offset) + 1 }, (_, i) => position + Math.sign(offset) * i);
    for (const place of places) svg.append(draw("circle", { cx: at(point(place))[0], cy: at(point(place))[1], r: 2.5, class: "dot" }));
    const begin = Math.atan2(...point(position));
    const spiral = Array.from({ length: 181 }, (_, i) => begin + (turn * i) / 180).map((angle, i) => at([Math.sin(angle), Math.cos(angle)], 0.3 + (0.25 * i) / 180));
    svg.append(draw("polyline", { points: spiral.map((pair) => pair.join()).join(" "), fill: "none", stroke: ACCENT, "stroke-width": 2.5 }));
    for (const [place, colour] of [[position, QUERIES], [position + offset, KEYS]]) {
      svg.append(line(at([0, 0]), at(point(place)), { stroke: colour, "stroke-width": 4 }));
      const [x, y] = at(point(place), 1.2);
      const index = draw("tspan", { "baseline-shift": "sub", "font-size": 12 }, page.digits(place));
      svg.append(draw("text", { x, y: y + 5, "text-anchor": "middle", class: "hand" }, "p", index));
    }
    const [x, y] = at(rotated);
    svg.append(draw("circle", { cx: x, cy: y, r: 9, fill: "none", stroke: ACCENT, "stroke-width": 2.5 }));
    svg.append(draw("text", { x: size / 2, y: size - 6, "text-anchor": "middle" }, words.text("figure.sine", { dimension: 2 * pair })));
    svg.append(draw("text", { "text-anchor": "middle", transform: `translate(14 ${size / 2}) rotate(-90)` }, words.text("figure.cosine", { dimension: 2 * pair + 1 })));
    return [svg, element("p", "turn", {}, words.text("figure.turn", about))];
  });
}

bindControls(page, show);
keepSite().catch(() => false);
