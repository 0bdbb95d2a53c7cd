// What the pages with a model share: loading it, its input and its address, the heads that are off, its view, and claims about
// its maps.

import { rowError } from "./attention.js";
import { readFrame as openFrame } from "./components/shared/mount.js";
import { callsOf } from "./model.js";
import { data, keepSite, language, loadFile, number, part, words } from "./page.js";
import { clearestOf, clearestPatch, makeView } from "./view_source.js";

const ROUNDING = 1e-5; // as in the app: what float32 may lose in sums of a few hundred terms
const LOGIT_ROUNDING = 1e-4; // the same through all layers and the output layer
const TYPING = 350; // milliseconds after the last key

/**
 * What the page says of its model: how much has arrived, that it is ready and whether it is kept, or why it is not and how to
 * try again. While it is not ready for want of a file, no older result is shown (style.css).
 */
function makeState() {
  const { format } = new Intl.NumberFormat(language, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
  const kept = keepSite().catch(() => false);
  let attempt = 0; // what still arrives of one that has ended says nothing
  const say = (name, values = {}) => {
    document.querySelector("main").dataset.state = name;
    part("progress").hidden = !["loading", "preparing"].includes(name);
    part("retry").hidden = !["failed", "offline-unkept"].includes(name);
    part("state").textContent = words.text(name, values);
  };
  const begin = () => {
    const mine = (attempt += 1);
    return ({ done, total }) => {
      if (mine !== attempt) return;
      Object.assign(part("progress"), { value: done, max: total });
      say(done < total ? "loading" : "preparing", { done: format(done / 1e6), total: format(total / 1e6) });
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
function headsNamed(off) {
  const named = off.map((place) => {
    const [group, layer, head] = place.split(".");
    return words.text("announcement", { name: data.labels[group], text: words.text("head_name", { layer: Number(layer) + 1, head: Number(head) + 1 }) });
  });
  return words.row(named);
}

/** Why an input is refused, in words. */
function explain(error) {
  const values = Object.fromEntries(Object.entries(error.values).map(([name, value]) => [name, typeof value === "number" ? (Number.isInteger(value) ? words.tick : number)(value) : value]));
  part("problem").hidden = false;
  part("problem").textContent = words.text(`problem.${error.message}`, values);
}

/** Badges: of the sums of all rows of the maps of `groups`, and of logits with a cache against those of the whole pass. */
function renderClaims(groups, cacheError) {
  const maps = groups.flatMap((group) => group.calls.map((_, layer) => [group, group.weights(layer)]));
  const heads = groups.reduce((sum, { calls }) => sum + calls.reduce((count, call) => count + call.heads, 0), 0);
  const rows = Math.max(...maps.map(([group, weights]) => rowError(weights, group.info.columns)));
  for (const [name, measured, limit] of [["rows", rows, ROUNDING], ["cache", cacheError, LOGIT_ROUNDING]]) {
    if (measured === undefined) continue;
    const node = part(`claim-${name}`);
    const holds = measured <= limit;
    const text = (of) => words.text(of, { heads, measured: words.number(measured), limit: words.number(limit) });
    Object.assign(node.dataset, { holds, measured });
    node.title = `${text(holds ? "holds" : "fails")} ${text("measured.off-by")}`;
    node.innerHTML = `${holds ? "✓" : "✗"} ${text(`claim.${name}`)} ${text("badge.off-by")}`; // a claim may hold formulas as MathML
  }
}

/** Read what a page in a frame is asked to show; the page around it is told how high that is, at each change. */
function readFrame() {
  if (!document.body.classList.contains("view")) return;
  if (location.search) history.replaceState(null, "", `${location.pathname}#${[location.search, location.hash].map((each) => each.slice(1)).filter(Boolean).join("&")}`);
  const only = new URLSearchParams(location.hash.slice(1)).get("only") ?? ""; // "map": the open map alone, with its words
  document.documentElement.dataset.only = part("view").dataset.only = only;
  const tell = () => parent.postMessage({ atlasHeight: Math.ceil(document.body.getBoundingClientRect().height) }, "*"); // says nothing of the reader
  if (parent !== self) new ResizeObserver(tell).observe(document.body);
}

/** What stands in an address; empty values are left out. */
const search = (entries) => String(new URLSearchParams(entries.filter(isGiven)));
const isGiven = ([, value]) => value || value === 0;

/** Entries of the app's address: heads that are off, the open head, the view's pins and look. */
const headsInApp = (prefix, { off, head, pin, look }) => [
  ...off.map((place) => place.split(".")).map(([group, layer, number]) => [`${prefix}-without`, `${group.replace("-self", "")}-${Number(layer) + 1}.${Number(number) + 1}`]),
  ["head", head], ["pin", pin], ["look", look],
];

/** The heads that the address switches off, the one that it opens, and the view's pinned tokens and look, as in the app's. */
function readHeads(given) {
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
export function showWhole(off, whole, scores) {
  part("caption").hidden = part("whole").hidden = part("whole-caption").hidden = part("all-on").hidden = !off.length;
  if (!off.length) return;
  part("whole").textContent = whole;
  part("caption").textContent = words.text("off-without", { heads: headsNamed(off), score: number(scores[0]) });
  part("whole-caption").textContent = words.text("off-with", { score: number(scores[1]) });
}

/**
 * A page with a model: it runs for what the address says, and again for each change of it or of the controls.
 *
 * @param own what differs from page to page; `now` is what the address says
 *   prefix: of the app's query parameters
 *   read(valueOf): the values of controls but for the text, by the names of the controls and their texts
 *   entries(now): what of them stands in the address; linked(now): in the app's, if it is more than these with the prefix
 *   fill(now): the controls changed to suit them
 *   fresh(now, next): what else begins anew with a change of the controls; isSubmitted: whether a text waits for Enter
 *   load(progress, now): what `compute` takes, with the model; `globalThis.atlas` holds it, for tests and the curious
 *   prepare(now, progress): the model's input, or null where there is none yet; takes no part in the time
 *   compute(loaded, now, {off, isStopped, onToken}, input): what the model makes of it, or null where it was stopped
 *   groupsOf(found, now), display, folded: its maps, how they are shown first and `folded` of the view's header, where it has a view of them
 *   showRecorded(bytes): what the build recorded of the example, where it is not what the model returns
 *   show(found, whole, now, time): all but the maps; `whole` was computed with all heads on
 * @returns {{writeAddress: (changes: object) => void, run: () => Promise<void>}}
 */
export function startPage(own) {
  const form = part("form");
  const { text: input } = form.elements;
  const early = input?.value; // typed before this script was here
  let [newest, typing] = [0, 0];
  let first = {}; // what opens where the address names no head, and which it then need not name
  readFrame();
  const state = makeState();
  const read = (valueOf) => ({ ...own.read(valueOf), ...(input && { text: valueOf("text") || data.example }) });
  const entriesOf = (now) => [["text", now.text === data.example ? "" : now.text], ...own.entries(now)];

  function readAddress() {
    const given = new URLSearchParams(location.hash.slice(1));
    return { ...read((name) => given.get(name)), ...readHeads(given) };
  }

  /** Change the address, so that a link shows the same again, and the links to the whole page and to the app. */
  function writeAddress(changes) {
    const now = { ...readAddress(), ...changes };
    const view = own.groupsOf ? [["head", now.head === data.open && !now.pin ? "" : now.head], ["pin", now.pin], ["look", now.look]] : [];
    const entries = [...entriesOf(now), ["off", now.off.join("_")], ...view];
    if (part("whole-page")) part("whole-page").hash = search(entries);
    const hash = search([...entries, ["only", document.documentElement.dataset.only]]);
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname);
    const linked = own.linked?.(now) ?? own.entries(now).map(([name, value]) => [`${own.prefix}-${name}`, value]);
    if (part("in-app")) part("in-app").search = search([["lang", language], ...linked, ...(own.groupsOf ? headsInApp(own.prefix, now) : [])]);
  }

  function present(found, whole, now, time) {
    if (own.groupsOf) {
      const groups = own.groupsOf(found, now);
      if (!now.head) {
        const [group] = own.groupsOf(whole, now); // as in the app: of the model with all heads
        const head = clearestOf(group);
        first = { head, pin: group.info.image ? clearestPatch(group, head) : "" };
      }
      view.open(groups, { ...now, ...(now.head ? {} : { head: first.head, pin: now.pin || first.pin }) }, now.off);
      renderClaims(groups, found.cacheError);
    }
    own.show(found, whole, now, time);
    if (input) document.documentElement.dataset.shown = now.text;
  }

  /** Until the model is here, a page that opens with its example shows what the build recorded of it. */
  async function presentRecorded() {
    const now = readAddress();
    if (now.off.length || entriesOf(now).some(isGiven)) return;
    const bytes = new Uint8Array(await loadFile(data.recorded));
    if (JSON.stringify(readAddress()) !== JSON.stringify(now)) return; // the reader was faster
    if (own.showRecorded) own.showRecorded(bytes);
    else {
      const found = readRecorded(bytes);
      present(found, found, now, words.text("recorded"));
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
      const given = await own.prepare?.(now, state.begin());
      if (given === null) return;
      const started = performance.now();
      const onToken = (written) => !isStopped() && !now.off.length && part("result") && (part("result").textContent = written);
      const found = await own.compute(globalThis.atlas, now, { off: now.off, isStopped, onToken }, given);
      const time = performance.now() - started;
      const whole = now.off.length && found ? await own.compute(globalThis.atlas, now, { isStopped }, given) : found;
      if (!found || !whole || isStopped()) return;
      present(found, whole, now, words.text("timing", { time: words.tick(Math.round(time)) }));
      document.documentElement.dataset.off = now.off.join("_");
      state.ready();
    } catch (error) {
      if (isStopped()) return;
      if (error.name !== "InputError") return state.failed(error);
      explain(error);
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
  const view = own.groupsOf && makeView(part("view"), { onSwitch, onOpen }, own);
  part("all-on")?.addEventListener("click", () => onSwitch([]));

  function arrive() {
    const now = readAddress();
    own.fill?.(now);
    for (const name of Object.keys(read(() => null))) if (form.elements[name]) form.elements[name].value = now[name];
    writeAddress({});
    run();
  }

  function change() {
    clearTimeout(typing);
    const next = read((name) => form.elements[name]?.value ?? null);
    writeAddress({ ...next, ...own.fresh?.(readAddress(), next) });
    own.fill?.(readAddress());
    run();
  }
  form.addEventListener("input", ({ target }) => {
    clearTimeout(typing);
    if (target.matches("select, [type=file]")) change();
    else if (!own.isSubmitted) typing = setTimeout(change, TYPING);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    change();
  });
  part("examples")?.addEventListener("click", ({ target: { dataset: { example } } }) => {
    if (!example) return;
    input.value = example;
    change();
  });
  globalThis.addEventListener("hashchange", arrive);
  arrive();
  if (early) {
    input.value = early;
    change();
  }

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
  return { writeAddress, run };
}
