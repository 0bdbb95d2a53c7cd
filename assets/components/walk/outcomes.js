// What came of a pass before and after the reader's changes, side by side.

import { element } from "../shared/elements.js";

/** Fill the panel; it is hidden while nothing is changed. */
export function showOutcomes(view) {
  const { parts, words, walk } = view;
  const { outcomes } = walk;
  parts.outcomes.hidden = !outcomes;
  if (!outcomes) {
    view.compared = null;
    parts.outcomes.replaceChildren();
    return;
  }
  if (view.compared === walk.key) return;
  view.compared = walk.key;
  const { before, now } = outcomes;
  parts.outcomes.replaceChildren(side(view, words.before, before, now), side(view, words.now, now, before));
  const read = (one) => [...one.text, "→", ...one.words.map(([word]) => word)].join(" ");
  parts.live.textContent = `${words.before}: ${read(before)}. ${words.now}: ${read(now)}.`;
}

/** One side: the text, then each word that was written, with its probability; what differs is marked. */
function side(view, name, own, other) {
  const made = element("p", "");
  const title = document.createElement("strong");
  title.textContent = name;
  made.append(title);
  own.text.forEach((word, i) => made.append(" ", marked("span", word, word !== other.text[i])));
  if (own.text.length) made.append(" → ");
  own.words.forEach(([word, share], i) => {
    made.append(" ", marked("b", word, word !== other.words[i]?.[0]));
    if (share === null) return;
    const small = document.createElement("small");
    small.textContent = ` ${view.percent(share)}`;
    made.append(small);
  });
  return made;
}

function marked(tag, text, changed) {
  const made = element(tag, changed ? "changed" : "");
  made.textContent = text;
  return made;
}
