// Browser history: the Back button undoes typed text.
//
// Streamlit replaces the address when a widget changes, and adds a history entry only when Python changes the address,
// as for a sample's button. So Back skipped typed sentences and left the chapter. Here changed text adds an entry; sliders
// and choices, which pass through many values, do not, though Python writes choices (ui/widgets/query_param.py).
//
// On the way to another chapter Streamlit adds entries too: this chapter without its parameters, then with those of the
// next one, and Back would stop at each. Here a link adds one entry, and the one before it stays as it was.
//
// After Back it adds entries where Python writes the address, and where a run of the page that was left begins late, whose
// address it writes again. The entries that Forward goes to would be lost. Here it adds none until the reader acts.

import { addVisited } from "../shared/storage.js";

const YEAR = 365 * 24 * 3600; // seconds

const DONE = Symbol.for("atlas.history");
const address = (url) => new URL(url ?? window.location.href, window.location.href);

/** Whether a query parameter belongs to a text input: its element has the key as a class. */
const isText = (name) => holds(name, ".stTextInput, .stTextArea");
const isChosen = (name) => holds(name, ".stButtonGroup, .stSelectbox, .stMultiSelect, .stSlider, .stTabs, .stRadio");
const holds = (name, kinds) => document.querySelector(`.st-key-${CSS.escape(name)}:is(${kinds}, :has(${kinds}))`) !== null;

function changed(before, after) {
  if (before.pathname !== after.pathname) return [];
  const names = new Set([...before.searchParams.keys(), ...after.searchParams.keys()]);
  const valueOf = (url, name) => url.searchParams.getAll(name).join("\n");
  return [...names].filter((name) => valueOf(before, name) !== valueOf(after, name));
}

const changesText = (before, after) => changed(before, after).some(isText);

function changesChoices(before, after) {
  const names = changed(before, after);
  return names.length > 0 && names.every(isChosen);
}

/** The address of this chapter before anything was typed: the one the browser opened, or the chapter's own. */
function opened() {
  const { href, pathname } = window.location;
  const first = new URL(performance.getEntriesByType("navigation")[0].name);
  return first.pathname === pathname ? first : new URL(pathname, href);
}

export default function ({ data }) {
  if (!data) return;
  document.documentElement.lang = data.language; // for screen readers, glyphs and line breaks
  // The server reads the language that was chosen at the next visit: COOKIE in ui/text/words.py.
  if (data.chosen) document.cookie = `atlas-language=${data.chosen}; path=/; max-age=${YEAR}; samesite=lax`;
  if (data.seen) addVisited(data.seen);
  if (history[DONE]) return;
  history[DONE] = true;
  const [replace, push] = [history.replaceState.bind(history), history.pushState.bind(history)];
  let left = null; // the address of the page that a link leaves
  let fresh = ""; // what has just led here, without any input since: "link", or "back" for Back and Forward
  let [before, here] = ["", window.location.pathname]; // the page that was left last, and this one
  const arrive = ({ pathname }) => pathname !== here && ([before, here] = [here, pathname]);
  const onClick = ({ target }) => {
    const link = target.closest?.("a[href]");
    if (link && address(link.href).pathname !== window.location.pathname) left = window.location.href;
  };
  const onInput = ({ isTrusted }) => isTrusted && (fresh = "");
  addEventListener("click", onClick, { capture: true });
  for (const name of ["pointerdown", "keydown", "click"]) addEventListener(name, onInput, { capture: true });
  const onBack = () => {
    [left, fresh] = [null, "back"];
    arrive(window.location);
  };
  addEventListener("popstate", onBack, { capture: true });
  history.pushState = (state, unused, url) => {
    const leaves = address(url).pathname !== window.location.pathname;
    if (leaves && !left && fresh === "back" && address(url).pathname === before) return undefined;
    if (!leaves && (left || fresh || changesChoices(address(), address(url)))) return replace(state, unused, url);
    if (leaves && left) replace(history.state, "", left);
    if (leaves) [left, fresh] = [null, "link"];
    arrive(address(url));
    return push(state, unused, url);
  };
  history.replaceState = (state, unused, url) => {
    const typed = !left && !fresh && changesText(address(), address(url));
    (typed ? push : replace)(state, unused, url);
  };
  const { href } = window.location;
  if (changesText(opened(), new URL(href))) {
    // Typed before this script was loaded: restore the first entry, and add one for the text.
    replace(history.state, "", opened());
    push(history.state, "", href);
  }
}
