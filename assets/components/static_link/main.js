// The link to the page without a server that shows the same as this one.

import { partsOf } from "../shared/mount.js";

// The address of a page of the site without a server that shows the same as the app's URL (ui/widgets/sidebar.py).

const IGNORED = ["lang", "embed", "embed_options"];

/** The address, or null where no page shows the same. */
function staticAddress(search, { address, language, pages }) {
  const given = new URLSearchParams(search);
  const shown = pages.map((page) => [page.file, entriesOf(given, page)]).find(([, entries]) => entries);
  if (!shown) return null;
  const [file, entries] = shown;
  const hash = new URLSearchParams(entries).toString();
  return `${address}/${language}/${file}.html${hash && `#${hash}`}`;
}

/** What the page's address holds, or null where it cannot show the same. */
function entriesOf(given, { only, carried }) {
  const names = [...given.keys()].filter((name) => !IGNORED.includes(name));
  if (names.some((name) => !(name in only) && !(name in carried))) return null;
  if (Object.entries(only).some(([name, allowed]) => !allowed.includes(given.get(name) ?? ""))) return null;
  const entries = [];
  for (const [key, carry] of Object.entries(carried)) {
    const value = given.has(key) ? valueOf(given.getAll(key), key, carry) : carry.initial;
    if (value === null) return null;
    if (value) entries.push([carry.name, value]);
  }
  return entries;
}

function valueOf(values, key, { name, values: known }) {
  if (name === "off") {
    const heads = key === "walk-edits" ? values[0].split("~").map(headOfEdit) : values.filter(Boolean).map(headOfName);
    return heads.includes(null) ? null : heads.join("_");
  }
  const value = values.at(-1);
  return known ? (known[value] ?? null) : value;
}

/** A head "cross-3.2" or a layer "encoder-3" of the app as "cross.2.1" or "encoder-self.2". */
function headOfName(name) {
  const [, group, layer, head] = /^(encoder|decoder|cross)-(\d+)(?:\.(\d+))?$/.exec(name) ?? [];
  if (!group) return null;
  return [group === "cross" ? group : `${group}-self`, layer - 1, ...(head ? [head - 1] : [])].join(".");
}

/** A head that an edit of the walk switches off, "off_decoder.0.cross_2"; null for any other edit. */
function headOfEdit(edit) {
  const [, stack, layer, kind, head] = /^off_(encoder|decoder)\.(\d+)\.(self|cross)_(\d+)$/.exec(edit) ?? [];
  if (!stack) return null;
  return [kind === "cross" ? kind : `${stack}-self`, layer, head].join(".");
}

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
