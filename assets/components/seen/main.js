// Marks on the cards of chapters: visited ones, and the last one.

import { fillIn } from "../shared/elements.js";
import { partsOf, readJson, viewComponent } from "../shared/mount.js";
import { clearVisited, readVisited } from "../shared/storage.js";

const RETRY = 250; // ms

function createView(parent) {
  const view = { parts: partsOf(parent) };
  view.parts.forget.addEventListener("click", () => {
    clearVisited();
    render(view);
  });
  return view;
}

function render(view) {
  const { parts, data } = view;
  const visited = readVisited().filter((name) => name in data.titles);
  const last = visited.at(-1);
  clearTimeout(view.timer);
  const cards = Object.keys(data.titles).map((name) => [name, document.querySelector(`.st-key-card-${CSS.escape(name)}`)]);
  for (const [name, card] of cards) {
    card?.toggleAttribute("data-seen", visited.includes(name));
    card?.toggleAttribute("data-last", name === last);
  }
  // One timer for all cards that are not drawn yet: one for each would multiply.
  if (cards.some(([, card]) => !card)) view.timer = setTimeout(render, RETRY, view);
  const values = { count: visited.length, all: Object.keys(data.titles).length, last: data.titles[last] };
  const text = visited.length ? data.words.some : data.words.none;
  parts.summary.textContent = fillIn(text, values);
  parts.forget.textContent = data.words.forget;
  parts.forget.hidden = !visited.length;
}

export default viewComponent(createView, (view, data) => {
  view.data = readJson(data);
  render(view);
}, ({ timer }) => clearTimeout(timer));
