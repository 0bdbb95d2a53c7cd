// Marks on the cards of chapters: visited ones, and the last one.

import { mountView, partsOf } from "../shared/mount.js";
import { clearVisited, readVisited } from "../shared/seen.js";

const RETRY = 250; // ms

const views = new WeakMap();

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
  parts.summary.textContent = text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
  parts.forget.textContent = data.words.forget;
  parts.forget.hidden = !visited.length;
}

export default function (component) {
  const { data } = component;
  if (!data) return undefined;
  const { view, unmount } = mountView(views, component, createView, ({ timer }) => clearTimeout(timer));
  view.data = JSON.parse(new TextDecoder().decode(data));
  render(view);
  return unmount;
}
