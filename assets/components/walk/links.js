// Curves from what a step reads to what it fills, for the row in hand.

import { cellOf } from "./layout.js";
import { numbersOf } from "./pixels.js";

const COLOURS = { queries: "#0072b2", keys: "#d55e00", values: "#009e73" };

export function drawLinks(pen, view) {
  const { stage, attention: a } = view.step;
  const box = (name) => view.layout.boxes.get(name);
  const before = box(a ? `state.${a - 1}` : "input");
  const row = view.row;
  const link = (from, fromRow, to, toRow, more) => curve(pen, rightOf(from, fromRow), leftOf(to, toRow), more);
  const call = view.walk.attentions[a];
  if (!call) return;
  if (stage === "projections") {
    link(before, row, box(`queries.${a}`), row, { colour: COLOURS.queries });
    if (call.crosses) return;
    for (const name of ["keys", "values"]) link(before, row, box(`${name}.${a}`), row, { colour: COLOURS[name] });
  } else if (stage === "scores" || stage === "mask") {
    const [scores, column] = [box(`scores.${a}`), view.cell?.column ?? Math.min(row, box(`scores.${a}`).columns - 1)];
    const target = cellOf(scores, row, column);
    const end = { x: scores.x, y: target.y + target.height / 2 }; // not across the numbers of the row
    curve(pen, rightOf(box(`queries.${a}`), row), end, { colour: COLOURS.queries });
    curve(pen, rightOf(box(`keys.${a}`), column), end, { colour: COLOURS.keys });
  } else if (stage === "softmax") {
    link(box(`scores.${a}`), row, box(`weights.${a}`), row, { colour: pen.accent });
  } else if (stage === "sum") {
    const weights = box(`weights.${a}`);
    const { values, columns } = numbersOf(view.walk, weights);
    for (let column = 0; column < columns; column += 1) {
      const weight = values[row * columns + column];
      if (weight < 0.02 || column >= weights.columns) continue;
      const end = leftOf(box(`outputs.${a}`), row);
      curve(pen, rightOf(box(`values.${a}`), column), end, { colour: COLOURS.values, width: 1 + 6 * weight, alpha: 0.25 + 0.6 * weight });
    }
    link(weights, row, box(`outputs.${a}`), row, { colour: pen.accent });
  } else if (stage === "heads") {
    link(box(`outputs.${a}`), row, box(`joined.${a}`), row, { colour: COLOURS.values });
  } else if (stage === "residual") {
    link(box(`joined.${a}`), row, box(`state.${a}`), row, { colour: pen.accent });
    link(before, row, box(`state.${a}`), row, { colour: pen.ink, alpha: 0.35 });
  } else if (stage === "feed-forward") {
    link(box("neurons"), row, box("output"), row, { colour: pen.accent });
  }
}

function rightOf(box, row) {
  const cell = cellOf(box, Math.min(row, box.rows - 1));
  return { x: cell.x + cell.width, y: cell.y + cell.height / 2 };
}

function leftOf(box, row) {
  const cell = cellOf(box, Math.min(row, box.rows - 1));
  return { x: cell.x, y: cell.y + cell.height / 2 };
}

function curve({ context, at }, from, to, { colour, width = 2, alpha = 0.9 }) {
  const [x, y, left, top] = [at.x(from.x), at.y(from.y), at.x(to.x), at.y(to.y)];
  const reach = Math.max(20, Math.abs(left - x) / 2);
  context.globalAlpha = alpha;
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  context.moveTo(x, y);
  context.bezierCurveTo(x + reach, y, left - reach, top, left, top);
  context.stroke();
  context.globalAlpha = 1;
}
