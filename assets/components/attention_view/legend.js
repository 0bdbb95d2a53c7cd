// What the colours mean.

import { element } from "../shared/elements.js";
import { TICKS } from "./colours.js";
import { drawOverScale } from "./over_picture.js";
import { onPicture } from "./state.js";

/** The legend: as wide as weights from 0 to 1 lie in the palette, with a few of them named. */
export function drawScale(view) {
  const { parts, words } = view;
  if (onPicture(view)) {
    drawOverScale(view);
    return;
  }
  parts.scale.hidden = view.state.look.mode === "links"; // lines are as wide as their weight
  const { scale, compare } = view.state.look;
  const paint = view.plots[0].cells.signed ? view.paints.signed : view.paints.weights;
  const stops = Array.from({ length: 11 }, (_, i) => paint.css(Math.round(i * 25.5)));
  const bar = element("span", "bar");
  bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  const weights = paint.signed ? [...TICKS[scale].map((weight) => -weight).reverse(), ...TICKS[scale]] : TICKS[scale];
  for (const weight of new Set(weights.map((each) => each || 0))) {
    if (paint.signed && ![0, 1, -1].includes(weight)) continue;
    const tick = element("span", "tick");
    tick.style.left = `${(paint.step(weight) / 255) * 100}%`;
    tick.textContent = words.tick(weight);
    bar.append(tick);
  }
  parts.scale.replaceChildren(words.text(compare === "difference" && paint.signed ? "difference" : "weight"), bar);
}
