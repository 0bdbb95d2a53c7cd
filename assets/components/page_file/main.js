// A page as a file: saved with the present URL, and loaded by navigating to the URL in it.

import { saveFile } from "../shared/files.js";
import { partsOf } from "../shared/mount.js";

const NAVIGATED = Symbol.for("atlas.opened");
const FRAME = ["embed", "embed_options"]; // set by a page that embeds this one: no part of its state

function save({ page, name }) {
  const address = Object.create(null);
  for (const [key, value] of new URL(window.location).searchParams) {
    if (!FRAME.includes(key)) (address[key] ??= []).push(value);
  }
  saveFile(new Blob([JSON.stringify({ ...page, address })], { type: "application/json" }), name);
}

/** Navigate as the Back button does: Streamlit then sets every control from the URL. Once for each file. */
function go({ turn, address }) {
  if (history[NAVIGATED] === turn) return;
  history[NAVIGATED] = turn;
  const here = new URL(window.location);
  const there = new URL(here.pathname, here);
  for (const name of FRAME) for (const value of here.searchParams.getAll(name)) there.searchParams.append(name, value);
  for (const [name, values] of Object.entries(address)) for (const value of values) there.searchParams.append(name, value);
  history.pushState(history.state, "", there);
  window.dispatchEvent(new PopStateEvent("popstate", { state: history.state }));
}

export default function ({ data, parentElement }) {
  const { save: button } = partsOf(parentElement);
  button.hidden = !data.save;
  if (data.save) {
    button.textContent = data.save.label;
    button.onclick = () => save(data.save);
  }
  if (data.go) go(data.go);
}
