// What the pages with a model share: loading it, its input and its address, the heads that are off, its view, and claims about
// its maps.

import { rowError } from "./attention.js";
import { readFrame as openFrame } from "./components/shared/mount.js";
import { callsOf } from "./model.js";
import { keepSite, loadFile, renderClaim } from "./page.js";
import { clearestOf, clearestPatch, makeView } from "./view_source.js";

const ROUNDING = 1e-5; // as in the app: what float32 may lose in sums of a few hundred terms
const LOGIT_ROUNDING = 1e-4; // the same through all layers and the output layer
const TYPING = 350; // milliseconds after the last key

/**
 * What the page says of its model: how much has arrived, that it is ready and whether it is kept, or why it is not and how to
 * try again. While it is not ready for want of a file, no older result is shown (style.css).
 */
function makeState({ part, words, megabytes }) {
  const kept = keepSite().catch(() => false);
  const bar = part("progress");
  let attempt = 0; // what still arrives of one that has ended says nothing
  const say = (name, values = {}) => {
    document.querySelector("main").dataset.state = name;
    bar.hidden = !["loading", "preparing"].includes(name);
    part("retry").hidden = !["failed", "offline-unkept"].includes(name);
    part("state").textContent = words.text(name, values);
  };
  const begin = () => {
    const mine = (attempt += 1);
    return ({ done, total }) => {
      if (mine !== attempt) return;
      Object.assign(bar, { value: done, max: total });
      if (done < total) say("loading", { done: megabytes(done), total: megabytes(total) });
      else say("preparing");
    };
  };
  const ready = async () => {
    const mine = (attempt += 1);
    const name = (await kept) ? "ready" : "ready-unkept";
    if (mine === attempt) say(name);
  };
  const failed = (error) => {
    attempt += 1;
    say(navigator.onLine ? "failed" : "offline-unkept", { reason: error.message });
    console.warn(error);
  };
  return { say, begin, ready, failed };
}

/** "Decoder self: Layer 2, head 3; ..." of heads "GROUP.LAYER.HEAD". */
function headsNamed({ data, words }, off) {
  const named = off.map((place) => {
    const [group, layer, head] = place.split(".");
    return words.text("announcement", { name: data.labels[group], text: words.text("head_name", { layer: Number(layer) + 1, head: Number(head) + 1 }) });
  });
  return words.row(named);
}

/** Why an input is refused, in words. */
function explain({ part, words, whole, number }, error) {
  const values = Object.fromEntries(Object.entries(error.values).map(([name, value]) => [name, typeof value === "number" ? (Number.isInteger(value) ? whole : number)(value) : value]));
  part("problem").hidden = false;
  part("problem").textContent = words.text(`problem.${error.message}`, values);
}

/** Badges: of all rows of the maps of `groups`, and of logits with a cache against those of the whole pass. */
function renderClaims(page, groups, cacheError) {
  const maps = groups.flatMap((group) => group.calls.map((_, layer) => [group, group.weights(layer)]));
  const heads = groups.reduce((sum, { calls }) => sum + calls.reduce((count, call) => count + call.heads, 0), 0);
  const rows = Math.max(...maps.map(([group, weights]) => rowError(weights, group.info.columns)));
  renderClaim(page.part("claim-rows"), page, page.words.text("claim.rows", { heads }), rows, ROUNDING);
  if (cacheError !== undefined) renderClaim(page.part("claim-cache"), page, page.words.text("claim.cache"), cacheError, LOGIT_ROUNDING);
}

/** Whether a frame shows the open map alone, with its words. */
const isMapOnly = () => document.documentElement.dataset.only === "map";

/** Read what a page in a frame is asked to show; the page around it is told how high that is, at each change. */
function readFrame({ part }) {
  if (!document.body.classList.contains("view")) return;
  if (location.search) history.replaceState(null, "", `${location.pathname}#${[location.search, location.hash].map((each) => each.slice(1)).filter(Boolean).join("&")}`);
  document.documentElement.dataset.only = new URLSearchParams(location.hash.slice(1)).get("only") ?? "";
  part("view").dataset.only = document.documentElement.dataset.only;
  const tell = () => parent.postMessage({ atlasHeight: Math.ceil(document.body.getBoundingClientRect().height) }, "*"); // says nothing of the reader
  if (parent !== self) new ResizeObserver(tell).observe(document.body);
}

const isGiven = ([, value]) => value || value === 0;

/** An address that holds what is shown, so that a link shows it again; empty values are left out. */
function writeHash({ part }, entries) {
  const given = entries.filter(isGiven);
  const hash = given.length ? `#${new URLSearchParams(given)}` : "";
  if (part("whole-page")) part("whole-page").hash = hash;
  const own = isMapOnly() ? `#${new URLSearchParams([...given, ["only", "map"]])}` : hash;
  history.replaceState(null, "", own || location.pathname);
}

/** Entries of the app's address: heads that are off, the open head, the view's pins and look. */
const headsInApp = (prefix, { off, head, pin, look }) => [
  ...off.map((place) => place.split(".")).map(([group, layer, number]) => [`${prefix}-without`, `${group.replace("-self", "")}-${Number(layer) + 1}.${Number(number) + 1}`]),
  ["head", head], ["pin", pin], ["look", look],
];

/** The heads that the address switches off, the one that it opens, and the view's pinned tokens and look, as in the app's. */
function readHeads({ data }, given) {
  const named = (given.get("off") ?? "").split("_").filter(Boolean);
  const off = data.heads.filter((place) => named.some((name) => place === name || place.startsWith(`${name}.`))); // a layer has all its heads
  return { off, head: data.heads.includes(given.get("head")) ? given.get("head") : data.open, pin: given.get("pin") ?? "", look: given.get("look") ?? "" };
}

/** What the build recorded of the page's example, as the model returns it. */
export function readRecorded(bytes) {
  const { header: { outputs, seen, ...found }, buffer, start } = openFrame(bytes);
  const values = (Kind, { offset, shape }) => new Kind(buffer, start + offset, shape.reduce((product, side) => product * side, 1));
  const tensors = Object.entries(outputs).map(([name, place]) => [name, { dims: place.shape, data: values(Float32Array, place) }]);
  return { ...found, calls: callsOf(Object.fromEntries(tensors)), ...(seen && { seen: { shape: seen.shape, values: values(Uint8Array, seen) } }) };
}

/** Beside a result with heads off, that of the whole model and both scores; `whole` is its text. */
export function showWhole(page, off, whole, scores) {
  const { part, words } = page;
  part("caption").hidden = part("whole").hidden = part("whole-caption").hidden = part("all-on").hidden = !off.length;
  if (!off.length) return;
  part("whole").textContent = whole;
  part("caption").textContent = words.text("off-without", { heads: headsNamed(page, off), score: page.number(scores[0]) });
  part("whole-caption").textContent = words.text("off-with", { score: page.number(scores[1]) });
}

/**
 * A page with a model: it runs for what the address says, and again for each change of it.
 *
 * @param own what differs from page to page
 *   prefix: of the app's query parameters
 *   read(given), fill(now): the values of controls in an address, and the controls set to them
 *   entries(now): what of them stands in the address
 *   linked(now): what stands in the app's, with its names; else `entries` with the prefix
 *   load(progress, now): what `compute` takes, with the model; `globalThis.atlas` holds it, for tests and the curious
 *   prepare(now, progress): the model's input, or null where there is none yet; takes no part in the time
 *   compute(loaded, now, {off, isStopped, onToken}, input): what the model makes of it, or null where it was stopped
 *   groupsOf(found, now), display: its maps and how they are shown first, where it has a view of them
 *   showRecorded(bytes): what the build recorded of the example, where it is not what the model returns
 *   show(found, whole, now, time): all but the maps; `whole` was computed with all heads on
 * @returns {{writeAddress: (changes: object) => void, run: () => Promise<void>}}
 */
export function startPage(page, own) {
  const { data, part, language } = page;
  let newest = 0;
  let first = {}; // what opens where the address names no head, and which it then need not name
  readFrame(page);
  const state = makeState(page);

  function readAddress() {
    const given = new URLSearchParams(location.hash.slice(1));
    return { ...own.read(given), ...readHeads(page, given) };
  }

  function writeAddress(changes) {
    const now = { ...readAddress(), ...changes };
    const entries = own.entries(now);
    const view = own.groupsOf ? [["head", now.head === data.open && !now.pin ? "" : now.head], ["pin", now.pin], ["look", now.look]] : [];
    writeHash(page, [...entries, ["off", now.off.join("_")], ...view]);
    const linked = own.linked?.(now) ?? entries.map(([name, value]) => [`${own.prefix}-${name}`, value]);
    const shown = [["lang", language], ...linked, ...(own.groupsOf ? headsInApp(own.prefix, now) : [])];
    if (part("in-app")) part("in-app").search = new URLSearchParams(shown.filter(isGiven));
  }

  function present(found, whole, now, time) {
    if (own.groupsOf) {
      const groups = own.groupsOf(found, now);
      if (!now.head) {
        const [group] = own.groupsOf(whole, now); // as in the app: of the model with all heads
        const head = clearestOf(group, data.measures);
        first = { head, pin: group.info.image ? clearestPatch(group, head) : "" };
      }
      view.open(groups, { ...now, ...(now.head ? {} : { head: first.head, pin: now.pin || first.pin }) }, now.off);
      renderClaims(page, groups, found.cacheError);
    }
    own.show(found, whole, now, time);
  }

  /** Until the model is here, a page that opens with its example shows what the build recorded of it. */
  async function presentRecorded() {
    const now = readAddress();
    if (now.off.length || own.entries(now).some(isGiven)) return;
    const bytes = new Uint8Array(await loadFile(data.recorded));
    if (JSON.stringify(readAddress()) !== JSON.stringify(now)) return; // the reader was faster
    if (own.showRecorded) own.showRecorded(bytes);
    else {
      const found = readRecorded(bytes);
      present(found, found, now, page.words.text("recorded"));
    }
    performance.mark("recorded");
  }

  async function run() {
    if (!globalThis.atlas) return;
    const mine = (newest += 1);
    const isStopped = () => mine !== newest;
    const now = readAddress();
    part("problem").hidden = true;
    try {
      const input = await own.prepare?.(now, state.begin());
      if (input === null) return;
      const started = performance.now();
      const onToken = (written) => !isStopped() && !now.off.length && part("result") && (part("result").textContent = written);
      const found = await own.compute(globalThis.atlas, now, { off: now.off, isStopped, onToken }, input);
      const time = performance.now() - started;
      const whole = now.off.length && found ? await own.compute(globalThis.atlas, now, { isStopped }, input) : found;
      if (!found || !whole || isStopped()) return;
      present(found, whole, now, page.words.text("timing", { time: page.whole(time) }));
      document.documentElement.dataset.off = now.off.join("_");
      state.ready();
    } catch (error) {
      if (isStopped()) return;
      if (error.name !== "InputError") return state.failed(error);
      explain(page, error);
      state.ready();
    }
  }

  const onSwitch = (off) => {
    writeAddress({ off });
    run();
  };
  const onOpen = (opened) => {
    const isFirst = opened.head === first.head && opened.pin === first.pin;
    writeAddress(isFirst ? { ...opened, head: data.open, pin: "" } : opened);
  };
  const fill = () => {
    own.fill(readAddress());
    writeAddress({});
  };
  const view = own.groupsOf && makeView(part("view"), data, language, { onSwitch, onOpen }, own.display);
  part("all-on")?.addEventListener("click", () => onSwitch([]));
  part("form").addEventListener("submit", (event) => event.preventDefault());
  globalThis.addEventListener("hashchange", () => {
    fill();
    run();
  });
  fill();
  /** Load the model, unless it is here, and run it. */
  async function start() {
    if (!globalThis.WebAssembly || !globalThis.DecompressionStream) return state.say("unsupported");
    if (!globalThis.atlas) await presentRecorded().catch(console.warn); // the model comes all the same
    try {
      globalThis.atlas ??= await own.load(state.begin(), readAddress());
    } catch (error) {
      return state.failed(error);
    }
    await run();
    document.documentElement.dataset.ready = "true";
  }
  part("retry").addEventListener("click", start);
  start();
  return { writeAddress, run, fill };
}

/**
 * A page whose model reads a text, with examples of it.
 *
 * @param own as `startPage` takes it, but `read(valueOf)` gives the values of the other controls, named as they are, by their texts
 *   fresh: what else begins anew with a text that is submitted; where it is given, nothing is computed while the reader types
 */
export function startTextPage(page, own) {
  const { data, part } = page;
  const form = part("form");
  const input = form.elements.text;
  const early = input.value; // typed before this script was here
  let typing = 0;
  const { writeAddress, run } = startPage(page, {
    ...own,
    read: (given) => ({ ...own.read((name) => given.get(name)), text: given.get("text") || data.example }),
    entries: (now) => [["text", now.text === data.example ? "" : now.text], ...own.entries(now)],
    fill: (now) => Object.keys(own.read(() => null)).concat("text").forEach((name) => form.elements[name] && (form.elements[name].value = now[name])),
    show(found, whole, now, time) {
      own.show(found, whole, now, time);
      document.documentElement.dataset.shown = now.text;
    },
  });
  const change = () => {
    clearTimeout(typing);
    writeAddress({ ...own.read((name) => form.elements[name]?.value ?? null), text: input.value || data.example, ...own.fresh });
    run();
  };
  form.addEventListener("input", () => {
    clearTimeout(typing);
    if (!own.fresh) typing = setTimeout(change, TYPING);
  });
  form.addEventListener("submit", change);
  part("examples").addEventListener("click", ({ target: { dataset: { example } } }) => {
    if (!example) return;
    input.value = example;
    change();
  });
  if (early) {
    input.value = early;
    change();
  }
  return { writeAddress, run };
}
