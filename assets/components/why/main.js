// After a reveal: a sentence that explains it, kept in the browser, and the Atlas's own beside it.
//
// The Atlas's reason is part of the page, in a container that stays hidden until the reader compares.

import { partsOf, readJson, viewComponent } from "../shared/mount.js";
import { readStored, store } from "../shared/storage.js";

function createView(parent) {
  const view = { parts: partsOf(parent), compared: false };
  view.parts.text.addEventListener("input", () => keep(view));
  view.parts.compare.addEventListener("click", () => {
    view.compared = true;
    keep(view);
    render(view);
  });
  return view;
}

const keep = ({ data, parts, compared }) => store(`atlas.why.${data.name}`, { text: parts.text.value, compared });

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
    const found = readStored(`atlas.why.${view.data.name}`);
    view.parts.text.value = String(found?.text ?? "");
    view.compared = found?.compared === true;
  }
  render(view);
});
