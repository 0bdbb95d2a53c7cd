// The page of the walk: one translation through the whole model, played by the app's component.

import showWalk from "./components/walk/main.js";
import { explain, listenToAddress, listenToExamples, readHeads, startModel } from "./model_page.js";
import { readPage } from "./page.js";
import { openTranslator } from "./translator.js";
import { encodeWalk, walkOf } from "./walk_source.js";

const GROUPS = { "encoder self": "encoder-self", "decoder self": "decoder-self", "decoder cross": "cross" };
const page = readPage();
const { data, part, language } = page;
const form = part("form");
const input = form.elements.text;
const parentElement = part("walk").attachShadow({ mode: "open" });
parentElement.innerHTML = part("markup").innerHTML;
const now = { key: 0, walk: null, before: null, place: "" };
let newest = 0;
let translator = null;

/** The address holds the text, the edits and the place, so that a link shows them again. */
function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const { off } = readHeads(page, given);
  return { text: given.get("text") ?? "", off, at: (given.get("at") ?? "").slice(0, 80) };
}

function writeAddress(changes) {
  const { text, off, at } = { ...readAddress(), ...changes };
  const entries = [["text", text === data.example ? "" : text], ["off", off.join("_")], ["at", at]].filter(([, value]) => value);
  history.replaceState(null, "", entries.length ? `#${new URLSearchParams(entries)}` : location.pathname + location.search);
  const link = part("in-app");
  const edits = off.map((head) => editOf(head).join("_")).join("~");
  const shown = [["w-model", "translator"], ["w-text", text || data.example], ["walk-at", at], ["walk-edits", edits]];
  if (link) link.search = new URLSearchParams(shown.filter(([, value]) => value));
}

/** A head, "GROUP.LAYER.HEAD", as an edit of the walk, ["off", site, head]; and back. */
function editOf(place) {
  const [group, layer, head] = place.split(".");
  const [stack, kind] = Object.entries(GROUPS).find(([, name]) => name === group)[0].split(" ");
  return ["off", `${stack}.${layer}.${kind}`, head];
}

function headOf([, site, head]) {
  const [stack, layer, kind] = site.split(".");
  return `${GROUPS[`${stack} ${kind}`]}.${layer}.${head}`;
}

function send(block) {
  const { key, walk, before, edits, place } = now;
  const bytes = encodeWalk(walk, { key: String(key), block, edits, before, words: data.walkWords, links: data.links, language, state: place });
  showWalk({ data: bytes, parentElement, setStateValue, setTriggerValue });
}

function setStateValue(name, value) {
  if (name === "place") writeAddress({ at: value });
  else send(value.split(".").map(Number));
}

function setTriggerValue(name, { edit }) {
  const { off } = readAddress();
  const head = edit && headOf(edit);
  writeAddress({ off: !head ? [] : off.includes(head) ? off.filter((each) => each !== head) : [...off, head] });
  run();
}

async function run() {
  if (!translator) return;
  const mine = (newest += 1);
  const isStopped = () => mine !== newest;
  const { text, off, at } = readAddress();
  part("problem").hidden = true;
  try {
    const walk = async (heads) => {
      const found = await translator.translate(text || data.example, { off: heads, isStopped });
      return found && walkOf(found, data.sizes, translator.nameOf);
    };
    const before = off.length ? await walk([]) : null;
    const walked = await walk(off);
    if (!walked || isStopped()) return;
    Object.assign(now, { key: now.key + 1, walk: walked, before, edits: off.map(editOf), place: at });
    const [, stack, block] = /^[a-z-]+\.([01])\.(\d)\./.exec(at) ?? [];
    send([Number(stack ?? 0), Math.min(Number(block ?? 0), data.sizes.layers - 1)]);
    Object.assign(document.documentElement.dataset, { shown: text, off: off.join("_") });
  } catch (error) {
    if (!isStopped()) explain(page, error);
  }
}

function listen() {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    writeAddress({ text: input.value, off: [], at: "" });
    run();
  });
  listenToExamples(page, input, () => form.requestSubmit());
  listenToAddress(fill, run);
}

function fill() {
  input.value = readAddress().text || data.example;
  writeAddress({});
}

async function open(progress) {
  translator = await openTranslator(data.files, data.sizes, progress);
  globalThis.atlas = { translator, now }; // for tests and the curious
}

fill();
listen();
startModel(page, open, run);
