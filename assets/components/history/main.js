// The Back button goes through what was typed.
//
// Streamlit puts what a control says into the address in place of what it said before, and makes an entry in the history
// only for what Python changes, as for a sample's button. So Back went past typed sentences and out of the chapter. Here a
// changed text makes an entry; sliders and choices, which pass through many values, do not, though Python writes choices
// (ui/widgets/query_param.py).
//
// On the way to another chapter Streamlit makes entries too: this chapter without what it says, then with what the next
// one says. Back would stop at each. Here a link makes one entry, and the one before it stays as it was.

import { noteSeen } from "../shared/seen.js";

const DONE = Symbol.for("atlas.history");
const address = (url) => new URL(url ?? window.location.href, window.location.href);

/** Whether the control with this name in the address is one to type in: its element has that key as a class. */
const isTyped = (name) => holds(name, ".stTextInput, .stTextArea");
const isChosen = (name) => holds(name, ".stButtonGroup, .stSelectbox, .stMultiSelect, .stSlider, .stTabs, .stRadio");
const holds = (name, kinds) => document.querySelector(`.st-key-${CSS.escape(name)}:is(${kinds}, :has(${kinds}))`) !== null;

function changed(before, after) {
  if (before.pathname !== after.pathname) return [];
  const names = new Set([...before.searchParams.keys(), ...after.searchParams.keys()]);
  const said = (where, name) => where.searchParams.getAll(name).join("\n");
  return [...names].filter((name) => said(before, name) !== said(after, name));
}

const changesText = (before, after) => changed(before, after).some(isTyped);

function changesChoices(before, after) {
  const names = changed(before, after);
  return names.length > 0 && names.every(isChosen);
}

/** The address of this chapter before anything was typed: the one the browser opened, or its own, led to from another. */
function opened() {
  const { href, pathname } = window.location;
  const first = new URL(performance.getEntriesByType("navigation")[0].name);
  return first.pathname === pathname ? first : new URL(pathname, href);
}

export default function ({ data }) {
  if (!data) return;
  document.documentElement.lang = data.language; // how it is read out, which glyphs are drawn and where lines break
  if (data.seen) noteSeen(data.seen);
  if (history[DONE]) return;
  history[DONE] = true;
  const [replace, push] = [history.replaceState.bind(history), history.pushState.bind(history)];
  let left = null; // the address that a link is leading away from
  let fresh = false; // whether a link has just led here, and nobody has touched anything since
  const followed = ({ target }) => {
    const link = target.closest?.("a[href]");
    if (link && address(link.href).pathname !== window.location.pathname) left = window.location.href;
  };
  const touched = () => (fresh = false);
  addEventListener("click", followed, { capture: true });
  for (const name of ["pointerdown", "keydown"]) addEventListener(name, touched, { capture: true });
  addEventListener("popstate", () => (left = null), { capture: true });
  history.pushState = (state, unused, url) => {
    const leaves = address(url).pathname !== window.location.pathname;
    if (!leaves && (left || fresh || changesChoices(address(), address(url)))) return replace(state, unused, url);
    if (leaves && left) replace(history.state, "", left);
    if (leaves) [left, fresh] = [null, true];
    return push(state, unused, url);
  };
  history.replaceState = (state, unused, url) => {
    const typed = !left && !fresh && changesText(address(), address(url));
    (typed ? push : replace)(state, unused, url);
  };
  const { href } = window.location;
  if (changesText(opened(), new URL(href))) {
    // Typed before this script was there: the first entry comes back, and the text has its own.
    replace(history.state, "", opened());
    push(history.state, "", href);
  }
}
