// The toolbar below a figure that fills the window: its input and number, the way to the others, and the end.

import { element } from "../shared/elements.js";

export function makeBar(words, { go, end }) {
  const root = element("div", "present-bar", { role: "toolbar", "aria-label": words.start });
  const button = (text, label, click) => {
    const made = element("button", "", { type: "button", "aria-label": label, title: label });
    made.textContent = text;
    made.addEventListener("click", click);
    return made;
  };
  const title = element("span", "present-title");
  const place = element("span", "present-place", { "aria-live": "polite" });
  root.append(
    title,
    button("←", words.previous, () => go(-1)),
    place,
    button("→", words.next, () => go(1)),
    button("✕", words.end, end),
  );
  const update = (number, count, chapter, sentence) => {
    title.textContent = [chapter, sentence].filter(Boolean).join(" · ");
    place.textContent = words.place.replace("{place}", number).replace("{count}", count);
  };
  return { root, update };
}
