// The bar at the bottom of the window: the number of the step, its question and answers, then what the page shows, and
// links on, back and out.

import { copyText } from "../shared/copy.js";
import { element } from "../shared/elements.js";

/** Make the bar; `follow` receives the clicked link, `guess` the number of the chosen answer, from 0, or -1 for none. */
export function makeBar(follow, leave, guess) {
  const root = element("section", "tour-bar", { "data-tour": "" });
  const place = element("span", "tour-place");
  const sentence = element("span", "tour-sentence");
  const text = element("p", "tour-text", { "aria-live": "polite" });
  text.append(place, " ", sentence);
  const answers = element("div", "tour-answers", { role: "group" });
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
  root.append(text, answers, ways);

  function button(name, click) {
    const made = element("button", name, { type: "button" });
    made.addEventListener("click", () => click(root.words, root.link));
    return made;
  }

  /** One button for each answer, and one that shows without a guess. */
  function ask(step, words) {
    answers.setAttribute("aria-label", step.question);
    answers.replaceChildren(
      ...[...step.answers, words.show].map((label, i) => {
        const made = element("button", i < step.answers.length ? "tour-answer" : "tour-show", { type: "button" });
        made.textContent = label;
        made.addEventListener("click", () => guess(i < step.answers.length ? i : -1));
        return made;
      }),
    );
  }

  /** Show the step with this number, from 1: its question, or after the guess what the page shows. */
  function show(number, { words, steps, count }, toAddress, guessed) {
    const step = steps[number - 1];
    root.words = words;
    root.link = toAddress(step.link, true);
    root.setAttribute("aria-label", words.name);
    place.textContent = words.place.replace("{place}", number).replace("{count}", count);
    const isOpen = guessed === undefined;
    const reply = guessed === -1 ? "" : words[guessed === step.right ? "right" : "wrong"];
    const content = isOpen ? step.question : `${reply} ${step.shown}`.trim();
    if (sentence.textContent !== content) {
      const hadFocus = answers.contains(document.activeElement);
      [sentence.textContent, copied.textContent] = [content, ""];
      answers.replaceChildren();
      if (isOpen) ask(step, words);
      else if (hadFocus) focus();
    }
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

  /** The first answer has the focus, or after the guess the link on. */
  function focus() {
    (answers.firstChild ?? (next.hidden ? back : next)).focus({ preventScroll: true });
  }

  return { root, show, focus };
}
