// The map of the chapters: which of the cards on this page a reader has been to, and where last.

import { mountView, partsOf } from "../shared/mount.js";
import { forgetSeen, readSeen } from "../shared/seen.js";

const RETRY = 250; // ms

const views = new WeakMap();

function createView(parent) {
  const view = { parts: partsOf(parent) };
  view.parts.forget.addEventListener("click", () => {
    forgetSeen();
    render(view);
  });
  return view;
}

function render(view) {
  const { parts, data } = view;
  const seen = readSeen().filter((name) => name in data.titles);
  const last = seen.at(-1);
  clearTimeout(view.timer);
  const cards = Object.keys(data.titles).map((name) => [name, document.querySelector(`.st-key-card-${CSS.escape(name)}`)]);
  for (const [name, card] of cards) {
    card?.toggleAttribute("data-seen", seen.includes(name));
    card?.toggleAttribute("data-last", name === last);
  }
  // One timer for all cards that are on their way, or each would set as many again.
  if (cards.some(([, card]) => !card)) view.timer = setTimeout(render, RETRY, view);
  const values = { count: seen.length, all: Object.keys(data.titles).length, last: data.titles[last] };
  const text = seen.length ? data.words.some : data.words.none;
  parts.said.textContent = text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
  parts.forget.textContent = data.words.forget;
  parts.forget.hidden = !seen.length;
}

export default function (component) {
  const { data } = component;
  if (!data) return undefined;
  const { view, unmount } = mountView(views, component, createView, ({ timer }) => clearTimeout(timer));
  view.data = JSON.parse(new TextDecoder().decode(data));
  render(view);
  return unmount;
}
