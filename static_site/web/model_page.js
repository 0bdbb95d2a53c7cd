// What the pages with a model share: loading it, the heads that are off, claims about its maps.

import { keepSite, renderClaim } from "./page.js";
import { rowError } from "./attention.js";

const ROUNDING = 1e-5; // as in the app: what float32 may lose in sums of a few hundred terms
const LOGIT_ROUNDING = 1e-4; // the same through all layers and the output layer

/** Load the model with a progress bar, run it for the first time, and say whether the page works offline from now on. */
export async function startModel({ part, words, megabytes }, open, run) {
  const say = (name, values = {}) => (part("state").textContent = words.text(name, values));
  if (!globalThis.WebAssembly || !globalThis.DecompressionStream) return say("unsupported");
  const kept = keepSite().catch(() => false);
  const bar = part("progress");
  const progress = ({ done, total }) => {
    Object.assign(bar, { value: done, max: total });
    if (done < total) say("loading", { done: megabytes(done), total: megabytes(total) });
    else say("preparing");
  };
  try {
    await open(progress);
  } catch (error) {
    say("failed", { reason: error.message });
    throw error;
  }
  bar.hidden = true;
  await run();
  document.documentElement.dataset.ready = "true";
  return say((await kept) ? "ready" : "ready-unkept");
}

/** "Decoder self: Layer 2, head 3; ..." of heads "GROUP.LAYER.HEAD". */
export function headsNamed({ data, words }, off) {
  const named = off.map((place) => {
    const [group, layer, head] = place.split(".");
    return words.text("announcement", { name: data.labels[group], text: words.text("head_name", { layer: Number(layer) + 1, head: Number(head) + 1 }) });
  });
  return words.row(named);
}

/** Why an input is refused, in words; any other error goes on. */
export function explain({ part, words, whole, number }, error) {
  if (error.name !== "InputError") throw error;
  const values = Object.fromEntries(Object.entries(error.values).map(([name, value]) => [name, typeof value === "number" ? (Number.isInteger(value) ? whole : number)(value) : value]));
  part("problem").hidden = false;
  part("problem").textContent = words.text(`problem.${error.message}`, values);
}

/** The badge of all rows of the maps of `groups`. */
export function claimRows(page, groups) {
  const maps = groups.flatMap((group) => group.calls.map((_, layer) => [group, group.weights(layer)]));
  const heads = groups.reduce((sum, { calls }) => sum + calls.reduce((count, call) => count + call.heads, 0), 0);
  const rows = Math.max(...maps.map(([group, weights]) => rowError(weights, group.info.columns)));
  renderClaim(page.part("claim-rows"), page, page.words.text("claim.rows", { heads }), rows, ROUNDING);
}

/** The badge of logits with a cache against those of the whole pass. */
export function claimCache(page, error) {
  renderClaim(page.part("claim-cache"), page, page.words.text("claim.cache"), error, LOGIT_ROUNDING);
}

/** An address that holds what is shown, so that a link shows it again; empty values are left out. */
export function writeHash(page, entries) {
  const given = entries.filter(([, value]) => value || value === 0);
  const hash = given.length ? `#${new URLSearchParams(given)}` : "";
  history.replaceState(null, "", hash || location.pathname + location.search);
  page.part("whole-page").hash = hash;
}

/** Let the link to the app show the same: values of its controls, heads that are off, the open head. */
export function linkApp({ part, language }, prefix, entries, { off, head }) {
  const link = part("in-app");
  if (!link) return;
  const without = off.map((place) => place.split(".")).map(([group, layer, number]) => `${group.replace("-self", "")}-${Number(layer) + 1}.${Number(number) + 1}`);
  const shown = [["lang", language], ...entries.map(([name, value]) => [`${prefix}-${name}`, value]), ...without.map((place) => [`${prefix}-without`, place]), ["head", head]];
  link.search = new URLSearchParams(shown.filter(([, value]) => value || value === 0));
}
