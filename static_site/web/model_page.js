// What the pages with a model share: loading it, its text, its view, the heads that are off, claims about its maps.

import { rowError } from "./attention.js";
import { keepSite, renderClaim } from "./page.js";
import { makeView } from "./view_source.js";

const ROUNDING = 1e-5; // as in the app: what float32 may lose in sums of a few hundred terms
const LOGIT_ROUNDING = 1e-4; // the same through all layers and the output layer
const TYPING = 350; // milliseconds after the last key

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
function headsNamed({ data, words }, off) {
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
function claimCache(page, error) {
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
export function linkApp({ part, language }, prefix, entries, { off, head, pin, look }) {
  const link = part("in-app");
  if (!link) return;
  const without = off.map((place) => place.split(".")).map(([group, layer, number]) => `${group.replace("-self", "")}-${Number(layer) + 1}.${Number(number) + 1}`);
  const shown = [["lang", language], ...entries.map(([name, value]) => [`${prefix}-${name}`, value]), ...without.map((place) => [`${prefix}-without`, place]), ["head", head], ["pin", pin], ["look", look]];
  link.search = new URLSearchParams(shown.filter(([, value]) => value || value === 0));
}

/** The heads that the address switches off, the one that it opens, and the view's pinned tokens and look, as in the app's. */
export function readHeads({ data }, given) {
  const named = (given.get("off") ?? "").split("_").filter(Boolean);
  const off = data.heads.filter((place) => named.some((name) => place === name || place.startsWith(`${name}.`))); // a layer has all its heads
  return { off, head: data.heads.includes(given.get("head")) ? given.get("head") : data.open, pin: given.get("pin") ?? "", look: given.get("look") ?? "" };
}

/** The entries of the address that `readHeads` reads. */
export const headEntries = ({ data }, { off, head, pin, look }) => [["off", off.join("_")], ["head", head === data.open && !pin ? "" : head], ["pin", pin], ["look", look]];

/** The attention view of a page; it writes what is switched off or opened to the address. */
export function makeHeadView({ data, part, language }, writeAddress, run, display = {}) {
  const onSwitch = (off) => {
    writeAddress({ off });
    run();
  };
  return makeView(part("view"), part("markup").innerHTML, data, language, { onSwitch, onOpen: writeAddress }, display);
}

/** Beside a result with heads off, that of the whole model and both scores; `whole` is its text. */
export function showWhole(page, off, whole, scores) {
  const { part, words } = page;
  const isOff = off.length > 0;
  part("caption").hidden = part("whole").hidden = part("whole-caption").hidden = part("all-on").hidden = !isOff;
  if (!isOff) return;
  part("whole").textContent = whole;
  part("caption").textContent = words.text("off-without", { heads: headsNamed(page, off), score: scores[0] });
  part("whole-caption").textContent = words.text("off-with", { score: scores[1] });
}

/** Bars of probabilities, each a name and its share. */
export function renderBars({ part, language }, entries) {
  const percent = new Intl.NumberFormat(language, { style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1 });
  const nodes = entries.flatMap(([label, chance]) => {
    const [name, bar, value] = ["span", "i", "b"].map((tag) => document.createElement(tag));
    name.textContent = label;
    bar.style.width = `${100 * chance}%`;
    value.textContent = percent.format(chance);
    return [name, bar, value];
  });
  part("bars").replaceChildren(...nodes);
}

/** Switch all heads on by the button, and run again when a reader goes back or changes the address. */
export function listenToHeads({ part }, writeAddress, fill, run) {
  part("all-on").addEventListener("click", () => {
    writeAddress({ off: [] });
    run();
  });
  listenToAddress(fill, run);
}

/** Fill the controls and run again when a reader goes back or changes the address. */
export function listenToAddress(fill, run) {
  globalThis.addEventListener("hashchange", () => {
    fill();
    run();
  });
}

/**
 * A page whose model reads a text: it runs for what the address says, and again for each change.
 *
 * @param own what differs from page to page
 *   prefix: of the app's query parameters
 *   read(given), write(): values of the other controls in an address, and as they are set now
 *   fill(now): set these controls
 *   entries(now), appEntries(now, text): entries of the address, and of the app's
 *   load(progress): the model
 *   compute(model, text, now, options): what it makes of a text, or null where it was stopped; `options` {off, isStopped, onToken}
 *   groupsOf(found, text), show(found, whole, text, now, time): its maps, and all but them
 */
export function startTextPage(page, own) {
  const { data, part } = page;
  const form = part("form");
  const input = form.elements.text;
  let [newest, typing, model] = [0, 0, null];
  const view = makeHeadView(page, writeAddress, run);

  function readAddress() {
    const given = new URLSearchParams(location.hash.slice(1));
    return { text: given.get("text") ?? "", ...own.read(given), ...readHeads(page, given) };
  }

  function writeAddress(changes) {
    const now = { ...readAddress(), ...changes };
    writeHash(page, [["text", now.text], ...own.entries(now), ...headEntries(page, now)]);
    linkApp(page, own.prefix, own.appEntries(now, now.text || data.example), now);
  }

  async function run() {
    if (!model) return;
    const mine = (newest += 1);
    const isStopped = () => mine !== newest;
    const now = readAddress();
    const text = input.value || data.example;
    part("problem").hidden = true;
    const started = performance.now();
    try {
      const onToken = (written) => !isStopped() && !now.off.length && (part("result").textContent = written);
      const found = await own.compute(model, text, now, { off: now.off, isStopped, onToken });
      const time = performance.now() - started;
      const whole = now.off.length && found ? await own.compute(model, text, now, { isStopped }) : found;
      if (!found || !whole || isStopped()) return;
      const groups = own.groupsOf(found, text);
      view.open(groups, now, now.off);
      own.show(found, whole, text, now, time);
      claimRows(page, groups);
      claimCache(page, found.cacheError);
      Object.assign(document.documentElement.dataset, { shown: text, off: now.off.join("_"), written: found.text });
    } catch (error) {
      if (!isStopped()) explain(page, error);
    }
  }

  const change = () => {
    clearTimeout(typing);
    writeAddress({ text: input.value, ...own.write() });
    run();
  };
  const fill = () => {
    const now = readAddress();
    input.value = now.text || data.example;
    own.fill(now);
    writeAddress({});
  };
  form.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(change, TYPING);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    change();
  });
  listenToExamples(page, input, change);
  listenToHeads(page, writeAddress, fill, run);
  fill();
  const open = async (progress) => {
    model = await own.load(progress);
    globalThis.atlas = { model }; // for tests and the curious
  };
  startModel(page, open, run);
}

/** Put the example that is clicked into the input. */
export function listenToExamples({ part }, input, onChosen) {
  part("examples").addEventListener("click", (event) => {
    const { example } = event.target.dataset;
    if (!example) return;
    input.value = example;
    onChosen();
  });
}
