// The link to the page without a server that shows the same as this one.

import { partsOf } from "../shared/mount.js";
import { staticAddress } from "./static_address.js";

/** Keep the link up to date; it is hidden while the URL holds what the static page does not show. */
export default function ({ data, parentElement }) {
  const { link } = partsOf(parentElement);
  link.textContent = data.label;
  const update = () => {
    const address = staticAddress(window.location.search, data);
    link.hidden = !address;
    if (address) link.href = address;
  };
  update();
  window.navigation?.addEventListener("currententrychange", update);
  link.onpointerdown = link.onfocus = update; // where a browser reports no change of the URL
  return () => window.navigation?.removeEventListener("currententrychange", update);
}
