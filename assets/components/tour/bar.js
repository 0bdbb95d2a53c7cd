// The bar at the bottom of the window: the number of the step, its sentence, and links on, back and out.

import { copyText } from "../shared/copy.js";
import { element } from "../shared/elements.js";

/** Make the bar; `follow` receives the clicked link. */
export function makeBar(follow, leave) {
  const root = element("section", "tour-bar", { "data-tour": "" });
  const place = element("span", "tour-place");
  const sentence = element("span", "tour-sentence");
  const text = element("p", "tour-text", { "aria-live": "polite" });
  text.append(place, " ", sentence);
  const [back, next] = ["tour-back", "tour-next"].map((name) => {
    const link = element("a", name);
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return; // into another window
      event.preventDefault();
      follow(link.href);
    });
    return link;
  });
  const copied = element("span", "tour-copied", { role: "status" });
  const copy = button("tour-copy", async (words, link) => (copied.textContent = (await copyText(link)) ? words.copied : ""));
  const end = button("tour-leave", leave);
  const ways = element("div", "tour-ways");
  ways.append(back, next, copy, end, copied);
  root.append(text, ways);

  function button(name, click) {
    const made = element("button", name, { type: "button" });
    made.addEventListener("click", () => click(root.words, root.link));
    return made;
  }

  /** Show the step with this number, from 1. */
  function show(number, { words, steps, count }, toAddress) {
    const step = steps[number - 1];
    root.words = words;
    root.link = toAddress(step.link, true);
    root.setAttribute("aria-label", words.name);
    place.textContent = words.place.replace("{place}", number).replace("{count}", count);
    if (sentence.textContent !== step.sentence) [sentence.textContent, copied.textContent] = [step.sentence, ""];
    for (const [link, other, label] of [
      [back, steps[number - 2], words.back],
      [next, steps[number], words.next],
    ]) {
      link.textContent = label;
      link.hidden = !other;
      if (other) link.href = toAddress(other.link);
    }
    for (const [one, label, title] of [
      [copy, words.copy, words.copy],
      [end, words.leave, words["leave-key"]],
    ]) {
      one.textContent = label;
      one.title = title;
    }
  }

  return { root, show, focus: () => (next.hidden ? back : next).focus({ preventScroll: true }) };
}
