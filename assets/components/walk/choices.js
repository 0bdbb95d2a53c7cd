// The words that may follow, as bars; of the model without edits beside them, where something was changed.

import { write } from "./write.js";

/** Bars of one step's choice in a rectangle of the screen. */
export function drawChoices(pen, view, rect, share) {
  const { context } = pen;
  const { choices } = view.walk;
  const round = Math.min(view.step.round, choices.length - 1);
  const now = choices[round];
  const old = now.before;
  const high = rect.height / now.words.length;
  const size = Math.min(13 * pen.type, high * 0.55);
  if (size < 7) {
    context.strokeStyle = pen.ink;
    context.strokeRect(rect.x, rect.y, rect.width, rect.height);
    return;
  }
  const left = rect.x + rect.width * 0.36;
  const room = rect.width * 0.4;
  const chosen = view.step.stage === "choice" || view.step.stage === "again" ? now.chosen : null;
  now.words.forEach((word, i) => {
    const y = rect.y + i * high;
    const was = old ? old.probabilities[i] : null;
    context.font = `${word === chosen ? 700 : 400} ${size}px ${pen.font}`;
    context.textBaseline = "middle";
    context.textAlign = "right";
    context.fillStyle = word === chosen ? pen.accent : pen.ink;
    write(pen, view, word, left - 6, y + high / 2);
    context.fillStyle = word === chosen ? pen.accent : "#7f9d98";
    const tall = was === null ? 0.62 : 0.34;
    context.fillRect(left, y + high * 0.19, Math.max(1, room * now.probabilities[i] * share), high * tall);
    if (was !== null) {
      context.globalAlpha = 0.4;
      context.fillStyle = pen.ink;
      context.fillRect(left, y + high * 0.56, Math.max(1, room * was * share), high * 0.25);
      context.globalAlpha = 1;
    }
    context.fillStyle = pen.ink;
    context.textAlign = "left";
    const text = view.percent(now.probabilities[i]) + (was === null ? "" : ` (${view.percent(was)})`);
    write(pen, view, text, left + room * now.probabilities[i] * share + 5, y + high / 2);
  });
}
