// The guided tour: a bar at the bottom of the window leads from chapter to chapter (ui/chapter/tour.py). At each step it
// asks first: what answers the question is hidden until the reader has guessed or asked to see it, and the figure around
// it is not. Guesses are kept in memory until the tour is left.
//
// Each step is a URL. It is opened as by the Back button: Streamlit opens its chapter, and every control takes its value
// from the URL. So Back goes through the steps, and a step can be shared.

import { button, copyText, element, fillIn, isTypedIn } from "../shared/elements.js";
import { partsOf, readJson, viewComponent } from "../shared/mount.js";
import { stopFollowing } from "../shared/sight.js";
import { bringIntoSight, hide, mark } from "./place.js";

// The bar at the bottom of the window: the number of the step, its question and answers, then what the page shows, and
// links on, back and out.

/** Make the bar; `follow` receives the clicked link, `guess` the number of the chosen answer, from 0, or -1 for none. */
function makeBar(follow, leave, guess) {
  const place = element("span", "tour-place");
  const sentence = element("span", "tour-sentence");
  const text = element("p", "tour-text", { "aria-live": "polite" }, place, " ", sentence);
  const answers = element("div", "tour-answers", { role: "group" });
  const makeLink = (name, ...content) => {
    const link = element("a", name, {}, ...content);
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return; // into another window
      event.preventDefault();
      follow(link.href);
    });
    return link;
  };
  const [back, next] = [makeLink("tour-back"), makeLink("tour-next")];
  const copied = element("span", "tour-copied", { role: "status" });
  const copy = button("tour-copy", "", async () => (copied.textContent = (await copyText(root.link)) ? root.words.copied : ""));
  const end = button("tour-leave", "", leave);
  const ways = element("div", "tour-ways", {}, back, next, copy, end, copied);
  const recap = element("ol", "tour-recap");
  const root = element("section", "tour-bar", { "data-tour": "" }, text, answers, ways, recap);

  /** One button for each answer, and one that shows without a guess. */
  function ask(step, words) {
    answers.setAttribute("aria-label", step.question);
    answers.replaceChildren(
      ...[...step.answers, words.show].map((label, i) => {
        const isAnswer = i < step.answers.length;
        return button(isAnswer ? "tour-answer" : "tour-show", label, () => guess(isAnswer ? i : -1));
      }),
    );
  }

  /** What each step asked, what was guessed and what its page showed. */
  function sumUp({ words, steps, count }, toAddress, guesses) {
    const isRight = ({ right }, i) => guesses.get(i + 1) === right;
    const line = (step, i) => {
      const guess = step.answers[guesses.get(i + 1)];
      const mark = guess === undefined ? "–" : isRight(step, i) ? "✓" : "✗";
      const wrong = mark === "✗" ? [element("s", "", {}, guess), " "] : [];
      const link = makeLink("", `${mark} ${step.question} `, ...wrong, element("strong", "", {}, step.answers[step.right]));
      link.href = toAddress(step.link);
      return element("li", "", {}, link);
    };
    recap.replaceChildren(
      element("li", "tour-score", {}, fillIn(words.recap, { right: steps.filter(isRight).length, count })),
      ...steps.map(line),
    );
  }

  /** Show the step with this number, from 1: its question, or after the guess what the page shows; at the end, a recap. */
  function show(number, { words, steps, count }, toAddress, guesses) {
    const [step, guessed] = [steps[number - 1], guesses.get(number)];
    root.words = words;
    root.link = toAddress(step.link, true);
    root.setAttribute("aria-label", words.name);
    place.textContent = fillIn(words.place, { place: number, count });
    const isOpen = guessed === undefined;
    root.toggleAttribute("data-asks", isOpen);
    if (isOpen || number < count) recap.replaceChildren();
    else sumUp({ words, steps, count }, toAddress, guesses);
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
      ...(isOpen || number < count ? [] : [[next, { link: "./" }, words.onward]]),
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

const PARAMETER = "tour";
const WINDOW_PARAMETERS = ["embed", "embed_options", "lang", "present"]; // of this window, not of the step
const MAX_TRIES = 3;

let tour = null; // the last data from Python
let bar = null; // while on the tour
let shown = 0; // the step that is shown
let tries = 0; // to set its state again
const guesses = new Map(); // by the number of the step

/** A step's URL; for others without the parameters of this window. */
function toAddress(link, forOthers = false) {
  const there = new URL(link, document.baseURI);
  const here = new URL(window.location.href);
  for (const name of forOthers ? [] : WINDOW_PARAMETERS) {
    for (const value of here.searchParams.getAll(name)) there.searchParams.append(name, value);
  }
  return there.href;
}

/** The number of the step that the URL requests, if it is known; else 0. */
function requestedStep() {
  const here = new URL(window.location.href);
  const number = Number(here.searchParams.get(PARAMETER));
  const step = tour?.steps[number - 1];
  return step && new URL(step.link, document.baseURI).pathname === here.pathname ? number : 0;
}

function go(href) {
  history.pushState(history.state, "", href);
  window.dispatchEvent(new PopStateEvent("popstate", { state: history.state }));
  bar?.focus();
}

/** Show the step to a reader who chose this answer, or none (-1). */
function reveal(answer) {
  guesses.set(requestedStep(), answer);
  shown = 0;
  render();
}

/** The page stays as it is, and Back returns to the step. */
function leave() {
  const here = new URL(window.location.href);
  here.searchParams.delete(PARAMETER);
  history.pushState(history.state, "", here);
  render();
}

function render() {
  const number = requestedStep();
  if (!number) return close();
  const fresh = !bar;
  if (fresh) open();
  const isOpen = !guesses.has(number);
  bar.show(number, tour, toAddress, guesses);
  // On a touch screen the ring of the focus would look like a choice.
  if (fresh && document.activeElement === document.body && !matchMedia("(hover: none)").matches) bar.focus();
  writeHeight();
  const { chapter, place, part, hides, also } = tour.steps[number - 1];
  hide(isOpen ? place : "", hides, also);
  document.documentElement.toggleAttribute("data-tour-asks", isOpen);
  if (chapter !== tour.chapter) shown = 0; // its page is loading
  else if (shown !== number) {
    [shown, tries] = [number, 0];
    bringIntoSight(place, part, insist);
  }
}

/**
 * A run of the page that began before the step may restore a control's former value and undo the step's state. The
 * reader has not acted since, so set it again.
 */
function insist() {
  const step = tour?.steps[requestedStep() - 1];
  if (!step || tries === MAX_TRIES || stateOf(window.location.href) === stateOf(toAddress(step.link))) return;
  tries += 1;
  history.replaceState(history.state, "", toAddress(step.link));
  window.dispatchEvent(new PopStateEvent("popstate", { state: history.state }));
  bringIntoSight(step.place, step.part, insist);
}

/** The page state in a URL, in a canonical order. */
function stateOf(href) {
  const parameters = [...new URL(href).searchParams].filter(([name]) => !WINDOW_PARAMETERS.includes(name));
  return JSON.stringify(parameters.sort());
}

function open() {
  bar = makeBar(go, leave, reveal);
  document.querySelector(".stApp").append(bar.root);
  bar.watch = new ResizeObserver(writeHeight);
  bar.watch.observe(bar.root);
  document.documentElement.dataset.touring = "";
}

/** Let the page end where the bar begins, so that it covers nothing. */
function writeHeight() {
  document.documentElement.style.setProperty("--tour-height", `${bar.root.offsetHeight}px`);
}

function close() {
  shown = 0;
  if (!bar) return;
  bar.watch.disconnect();
  bar.root.remove();
  bar = null;
  guesses.clear();
  stopFollowing();
  mark("");
  hide("");
  delete document.documentElement.dataset.touring;
  delete document.documentElement.dataset.tourAsks;
}

function pressed(event) {
  if (event.key !== "Escape" || !bar || event.defaultPrevented) return;
  if ("presenting" in document.documentElement.dataset) return; // Escape ends that first
  if (isTypedIn(event, ", [role=listbox], [role=application]")) return;
  event.preventDefault();
  leave();
}

window.addEventListener("keydown", pressed);
window.addEventListener("popstate", render);

export default viewComponent(
  (parent) => {
    const parts = partsOf(parent);
    parts.root.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      go(parts.root.href);
    });
    return { parts };
  },
  (view, data) => {
    tour = readJson(data);
    const { root } = view.parts;
    root.textContent = tour.words.start;
    root.href = toAddress(tour.steps[0].link);
    render();
  },
  () => requestedStep() || close(),
);
