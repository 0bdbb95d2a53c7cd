// The page of the walk: one translation through the whole model, played by the app's component.

import showWalk from "./components/walk/main.js";
import markup from "./components/walk/view.js";
import { startTextPage } from "./model_page.js";
import { readPage } from "./page.js";
import { openTranslator } from "./translator.js";
import { encodeWalk, walkOf } from "./walk_source.js";

const GROUPS = { "encoder self": "encoder-self", "decoder self": "decoder-self", "decoder cross": "cross" };
const page = readPage();
const { data, part } = page;
const parentElement = part("walk").attachShadow({ mode: "open" });
parentElement.innerHTML = markup;
const now = { key: "", walk: null, before: null, off: [], at: "" };
let translator = null;

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
  const { key, walk, before, off, at } = now;
  const bytes = encodeWalk(walk, { key, block, edits: off.map(editOf), before, ...data.texts, state: at, about: data });
  showWalk({ data: bytes, parentElement, setStateValue, setTriggerValue });
}

const { writeAddress, run } = startTextPage(page, {
  fresh: { off: [], at: "" },
  read: (valueOf) => ({ at: (valueOf("at") ?? "").slice(0, 80) }),
  entries: ({ at }) => [["at", at]],
  linked: ({ text, at, off }) => [["w-model", "translator"], ["w-text", text], ["walk-at", at], ["walk-edits", off.map((head) => editOf(head).join("_")).join("~")]],
  async load(progress) {
    translator = await openTranslator(data.files, data.sizes, progress);
    return { translator, now };
  },
  async compute({ text }, { off = [], isStopped }) {
    const found = await translator.translate(text, { off, isStopped });
    return found && walkOf(found, data.sizes, translator.nameOf);
  },
  showRecorded: (bytes) => showWalk({ data: bytes, parentElement, setStateValue, setTriggerValue }),
  show(walk, whole, { text, off, at }) {
    Object.assign(now, { key: `${text} ${off}`, walk, before: off.length ? whole : null, off, at });
    const [, stack, block] = /^[a-z-]+\.([01])\.(\d)\./.exec(at) ?? [];
    send([Number(stack ?? 0), Math.min(Number(block ?? 0), data.sizes.layers - 1)]);
  },
});

function setStateValue(name, value) {
  if (name === "place") writeAddress({ at: value });
  else if (now.walk) send(value.split(".").map(Number));
}

function setTriggerValue(name, { edit }) {
  const head = edit && headOf(edit);
  writeAddress({ off: !head ? [] : now.off.includes(head) ? now.off.filter((each) => each !== head) : [...now.off, head] });
  run();
}
