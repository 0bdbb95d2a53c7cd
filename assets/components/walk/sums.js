// The arithmetic of a row or a cell, with its numbers.

import { element } from "../shared/elements.js";
import { allowedOf, numbersOf } from "./pixels.js";

const MOST_KEYS = 12;

/** Fill the panel for the row or the cell in hand; it is hidden where there is nothing to add up. */
export function showSums(view) {
  const { sums } = view.parts;
  const { step, zoom } = view;
  const call = view.walk.attentions[step.attention];
  const cell = zoom === "cell" && ["scores", "mask", "softmax"].includes(step.stage);
  const row = ["row", "cell"].includes(zoom) && ["scores", "mask", "softmax", "sum"].includes(step.stage);
  sums.hidden = !call || !(cell || row);
  if (sums.hidden) return;
  sums.replaceChildren(...(cell ? productOf(view) : rowOf(view)));
}

/** A row of the map: every key's score, exp and weight. */
function rowOf(view) {
  const { layout, step, row, walk } = view;
  const a = step.attention;
  const scores = layout.boxes.get(`scores.${a}`);
  const weights = layout.boxes.get(`weights.${a}`);
  const [score, weight, allowed] = [numbersOf(walk, scores).values, numbersOf(walk, weights).values, allowedOf(walk, scores)];
  const from = row * numbersOf(walk, scores).columns;
  const keys = walk.stacks[scores.keys].tokens.slice(0, scores.columns);
  const all = keys.map((token, j) => ({ token, j, s: score[from + j], w: weight[from + j], open: allowed[from + j] }));
  const open = all.filter((each) => each.open);
  const largest = Math.max(...open.map((each) => each.s));
  const total = open.reduce((sum, each) => sum + Math.exp(each.s - largest), 0);
  const shown = all.length > MOST_KEYS ? [...open].sort((one, other) => other.w - one.w).slice(0, MOST_KEYS) : all;
  const table = element("table", "");
  table.append(line("th", [view.words.key, "s", `exp(s − ${view.format(largest, 2)})`, view.words.weight, ""]));
  for (const { token, s, w, open: is } of shown) {
    const exp = is ? view.format(Math.exp(s - largest), 3) : "0";
    const tr = line("td", [token, view.format(s, 2), exp, view.format(w, 3), ""]);
    const share = element("span", "share");
    share.style.width = `${Math.round(120 * w)}px`;
    tr.lastChild.append(share);
    table.append(tr);
  }
  const sum = element("p", "");
  sum.textContent = view.say("sum-row", { total: view.format(total, 3), count: open.length });
  return [table, sum];
}

/** One score: the products of query and key, their sum, and the division. */
function productOf(view) {
  const { layout, step, row, cell, walk } = view;
  const [scores, queries, keys] = ["scores", "queries", "keys"].map((name) => layout.boxes.get(`${name}.${step.attention}`));
  const column = cell?.column ?? 0;
  const [q, k] = [numbersOf(walk, queries), numbersOf(walk, keys)];
  const d = q.columns;
  const terms = Array.from({ length: d }, (_, c) => [q.values[row * d + c], k.values[column * d + c]]);
  const dot = terms.reduce((sum, [one, other]) => sum + one * other, 0);
  const map = numbersOf(walk, scores);
  const score = map.values[row * map.columns + column];
  const list = element("div", "terms");
  for (const [one, other] of terms) {
    const term = element("span", "");
    term.textContent = `${view.format(one, 2)} · ${view.format(other, 2)}`;
    list.append(term);
  }
  const result = element("p", "");
  result.textContent = view.say("sum-cell", {
    query: walk.stacks[scores.tokens].tokens[row],
    key: walk.stacks[scores.keys].tokens[column],
    dot: view.format(dot, 3),
    d,
    score: view.format(score, 3),
  });
  return [list, result];
}

function line(tag, texts) {
  const tr = document.createElement("tr");
  for (const text of texts) {
    const cell = document.createElement(tag);
    cell.textContent = text;
    tr.append(cell);
  }
  return tr;
}
