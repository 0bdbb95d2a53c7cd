// After a reveal: a sentence that explains it, kept in the browser, and the Atlas's own beside it.
//
// The Atlas's reason is part of the page, in a container that stays hidden until the reader compares.

import { partsOf, readJson, viewComponent } from "../shared/mount.js";

function createView(parent) {
  const view = { parts: partsOf(parent), compared: false };
  view.parts.text.addEventListener("input", () => store(view));
  view.parts.compare.addEventListener("click", () => {
    view.compared = true;
    store(view);
    render(view);
  });
  return view;
}

function read({ data }) {
  try {
    const found = JSON.parse(localStorage.getItem(`atlas.why.${data.name}`));
    return { text: String(found?.text ?? ""), compared: found?.compared === true };
  } catch {
    return { text: "", compared: false }; // nothing stored, or storage is disabled
  }
}

function store({ data, parts, compared }) {
  try {
    localStorage.setItem(`atlas.why.${data.name}`, JSON.stringify({ text: parts.text.value, compared }));
  } catch {
    // storage is disabled: the sentence lasts as long as the page
  }
}

function render({ parts, data, compared }) {
  parts.compare.hidden = compared;
  document.querySelector(`.st-key-${CSS.escape(data.reason)}`)?.toggleAttribute("data-compared", compared);
}

export default viewComponent(createView, (view, data) => {
  const first = !view.data;
  view.data = readJson(data);
  view.parts.label.textContent = view.data.words.label;
  view.parts.compare.textContent = view.data.words.compare;
  if (first) {
    const { text, compared } = read(view);
    view.parts.text.value = text;
    view.compared = compared;
  }
  render(view);
});
