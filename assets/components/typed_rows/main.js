// Rows of cells as the reader typed them. Nothing is corrected here: Python reads them and says what it cannot read.

import { button, element } from "../shared/elements.js";
import { partsOf, viewComponent } from "../shared/mount.js";

const TYPING = 350; // pause before what is typed is sent
const DRAGGING = 60; // between two places of a dragged slider

function createView(parent) {
  const view = { parts: partsOf(parent), rows: null, turn: 0, sending: 0 };
  view.parts.add.addEventListener("click", () => {
    const { fresh, columns } = view.data;
    change(view, [...view.rows, [...fresh]]);
    inputsOf(view, view.rows.length - 1)[columns.length - 1].focus();
  });
  return view;
}

function closeView(view) {
  clearTimeout(view.sending);
}

/** Take new data; rows that Python made before the reader's last move are old news. */
function receive(view, data) {
  view.data = data;
  if (!view.rows || data.turn >= view.turn) {
    view.rows = data.rows.map((row) => [...row]);
    view.turn = data.turn;
  }
  render(view);
}

/** The reader changed rows as a whole: one came or went. */
function change(view, rows) {
  view.rows = rows;
  render(view);
  send(view, 0);
}

function render(view) {
  const { parts, data, rows } = view;
  parts.head.replaceChildren(...["", ...data.columns.slice(0, -1), data.slider].map((text) => element("span", "", {}, text)));
  parts.add.textContent = data.add;
  parts.add.disabled = rows.length >= data.most;
  while (parts.rows.children.length > rows.length) parts.rows.lastChild.remove();
  while (parts.rows.children.length < rows.length) parts.rows.append(makeRow(view, parts.rows.children.length));
  rows.forEach((row, i) => {
    row.forEach((cell, j) => {
      const input = inputsOf(view, i)[j];
      if (input.value !== cell) input.value = cell;
      input.setAttribute("aria-label", cellName(data, data.columns[j], i));
      input.setAttribute("aria-invalid", data.bad.some(([r, c]) => r === i && c === j));
    });
    followText(view, i);
    parts.rows.children[i].querySelector("button").disabled = rows.length <= 1;
  });
}

/** What a cell of a row is called where it is read aloud. */
function cellName({ cell, names }, column, i) {
  return cell.replace("{column}", column).replace("{row}", `${names}${i + 1}`);
}

function makeRow(view, i) {
  const { columns, names, slider, low, high, step, decimal, remove } = view.data;
  const name = element("span", "name", {}, `${names}${i + 1}`);
  const cells = columns.map((_, j) => {
    const input = element("input", "", { type: "text", inputmode: "text", autocomplete: "off", spellcheck: false });
    input.addEventListener("input", () => {
      view.rows[i][j] = input.value;
      followText(view, i);
      send(view, TYPING);
    });
    return input;
  });
  const range = element("input", "", { type: "range", min: low, max: high, step, "aria-label": cellName(view.data, slider, i) });
  range.addEventListener("input", () => {
    const last = columns.length - 1;
    cells[last].value = range.value.replace("-", "−").replace(".", decimal);
    view.rows[i][last] = cells[last].value;
    followText(view, i);
    send(view, DRAGGING);
  });
  const title = `${remove} ${names}${i + 1}`;
  const away = button("", "×", () => change(view, view.rows.filter((_, at) => at !== i)), { title, "aria-label": title });
  return element("div", "row", {}, name, ...cells.slice(0, -1), range, cells.at(-1), away);
}

/** The text inputs of a row, in the order of its columns. */
function inputsOf(view, i) {
  return [...view.parts.rows.children[i].querySelectorAll('input[type="text"]')];
}

/** Put a row's slider where its number is, if it is one. */
function followText(view, i) {
  const range = view.parts.rows.children[i].querySelector('input[type="range"]');
  const text = view.rows[i].at(-1);
  const value = Number(text.replace("−", "-").replace(",", "."));
  if (!Number.isFinite(value)) return;
  range.value = value;
  range.setAttribute("aria-valuetext", text);
}

/** Tell Python, at most once in `pause`: the last move counts, and a drag is followed while it lasts. */
function send(view, pause) {
  view.turn += 1;
  if (view.sending && pause === DRAGGING) return;
  clearTimeout(view.sending);
  view.sending = setTimeout(() => {
    view.sending = 0;
    view.setStateValue("rows", { rows: view.rows.map((row) => [...row]), turn: view.turn });
  }, pause);
}

export default viewComponent(createView, (view, data, { setStateValue }) => {
  view.setStateValue = setStateValue;
  receive(view, data);
}, closeView);
