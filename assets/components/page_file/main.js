// A page as a file: saved with the present URL, and loaded by navigating to the URL in it; and its page without a server.

import { saveFile } from "../shared/files.js";
import { partsOf } from "../shared/mount.js";
import { staticAddress } from "./static_address.js";

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

/** Keep the link to the page without a server up to date; it is hidden while the URL holds what that page does not show. */
function follow(link, site) {
  const update = () => {
    const address = staticAddress(window.location.search, site);
    link.hidden = !address;
    if (address) link.href = address;
  };
  update();
  window.navigation?.addEventListener("currententrychange", update);
  link.onpointerdown = link.onfocus = update; // where a browser reports no change of the URL
  return () => window.navigation?.removeEventListener("currententrychange", update);
}

export default function ({ data, parentElement }) {
  const { save: button, site } = partsOf(parentElement);
  site.hidden = true;
  button.hidden = !data.save;
  if (data.save) {
    button.textContent = data.save.label;
    button.onclick = () => save(data.save);
  }
  if (data.go) go(data.go);
  if (!data.site) return undefined;
  site.textContent = data.site.label;
  return follow(site, data.site);
}
