// Questions on chapters, and an overview of which ideas are known and which are due.

import { element, fillIn } from "../shared/elements.js";
import { partsOf, viewComponent } from "../shared/mount.js";
import { readStored, store } from "../shared/storage.js";

// When a question is due again. What a reader answered stays in the browser.

const KEY = "atlas.review";
const DAY = 24 * 60 * 60 * 1000;
/** Days until a question is due again, after as many right answers in a row; the last holds for all further ones. */
const DAYS = [1, 3, 7, 21, 60];

/** Answers by the question's id: how many right ones in a row, and when the last was given (ms). */
function readAnswers() {
  const found = Object.entries(readStored(KEY) ?? {});
  return Object.fromEntries(found.filter(([, each]) => Number.isInteger(each?.streak) && Number.isFinite(each?.at)));
}

/** The time at which an answered question is due: at once after a wrong answer. */
function dueAt({ streak, at }) {
  return streak > 0 ? at + DAYS[Math.min(streak, DAYS.length) - 1] * DAY : at;
}

/** "new", "due" or "known". */
function stateOf(answer, now) {
  if (!answer) return "new";
  return dueAt(answer) <= now ? "due" : "known";
}

/** Answers with one more: a right answer that was not due changes nothing, or cramming would look like knowing. */
function withAnswer(answers, id, right, now) {
  const before = answers[id];
  if (right && stateOf(before, now) === "known") return answers;
  return { ...answers, [id]: { streak: right ? (before?.streak ?? 0) + 1 : 0, at: now } };
}

function createView(parent) {
  const view = { parts: partsOf(parent), onlyDue: false, forgotten: null, chips: new Map() };
  view.parts.due.addEventListener("click", () => {
    view.onlyDue = !view.onlyDue;
    renderStates(view);
  });
  view.parts.forget.addEventListener("click", () => {
    const now = readAnswers();
    store(KEY, view.forgotten ?? {});
    view.forgotten = view.forgotten ? null : now;
    renderStates(view);
  });
  return view;
}

/** A text's nodes, with what is between ** in bold. */
function nodesOf(text) {
  return text.split("**").map((part, place) => (place % 2 ? element("b", "", {}, part) : part));
}

/** Where the idea is shown: the chapter's main figure, or its first. */
function figureLink(view, chapter) {
  const link = element("a", "", { href: chapter.href ?? `./${chapter.name}`, target: "_self" }, view.data.words.figure);
  link.addEventListener("click", (event) => {
    const figure = document.querySelector(".st-key-card-main") ?? document.querySelector('[class*="st-key-card-"]');
    if (!figure || !location.pathname.endsWith(`/${chapter.name}`)) return;
    event.preventDefault();
    figure.scrollIntoView({ block: "start" });
  });
  return link;
}

function questionOf(view, chapter, question) {
  const { words } = view.data;
  const reply = element("p", "reply", { role: "status" });
  const buttons = question.answers.map((answer) => {
    const made = element("button", "answer", { type: "button", "aria-pressed": "false" }, ...nodesOf(answer.text));
    made.addEventListener("click", () => {
      for (const each of buttons) each.setAttribute("aria-pressed", String(each === made));
      box.dataset.answered = answer.right ? "right" : "wrong";
      reply.replaceChildren(...nodesOf([answer.right ? words.right : words.wrong, answer.reply].filter(Boolean).join(" ")));
      if (!answer.right && chapter.href !== null) reply.append(" ", figureLink(view, chapter));
      // The first answer counts: a second try, with the reply read, says little.
      if (!box.dataset.counted) store(KEY, withAnswer(readAnswers(), question.id, answer.right, Date.now()));
      box.dataset.counted = "yes";
      view.forgotten = null;
      renderStates(view);
    });
    return made;
  });
  const box = element("fieldset", "question", {}, element("legend", "", {}, ...nodesOf(question.text)), ...buttons, reply);
  return box;
}

function chapterOf(view, chapter) {
  const questions = chapter.questions.map((question) => questionOf(view, chapter, question));
  if (view.data.mode === "questions") return questions;
  const summary = element("summary", "", {}, element("b", "", {}, chapter.title));
  const details = element("details", "chapter", {}, summary, ...questions);
  for (const { id } of chapter.questions) {
    const chip = element("span", "chip");
    view.chips.set(id, { chip, details });
    summary.append(" ", chip);
  }
  return [details];
}

function render(view) {
  const { parts, data } = view;
  view.chips.clear();
  parts.chapters.replaceChildren(...data.chapters.flatMap((chapter) => chapterOf(view, chapter)));
  renderStates(view);
}

function renderStates(view) {
  const { parts, data } = view;
  parts.head.hidden = data.mode !== "overview";
  if (parts.head.hidden) return;
  const [answers, now] = [readAnswers(), Date.now()];
  const date = new Intl.DateTimeFormat(data.language, { day: "numeric", month: "short" });
  const questions = data.chapters.flatMap((chapter) => chapter.questions);
  const due = new Set();
  for (const { id, idea } of questions) {
    const state = stateOf(answers[id], now);
    const { chip, details } = view.chips.get(id);
    if (state === "due") due.add(details);
    chip.dataset.state = state;
    const until = state === "known" ? date.format(new Date(dueAt(answers[id]))) : "";
    chip.textContent = fillIn(data.words[`state-${state}`], { idea, date: until });
  }
  openFirst(view, due);
  const known = questions.filter(({ id }) => stateOf(answers[id], now) === "known").length;
  const waiting = questions.filter(({ id }) => stateOf(answers[id], now) === "due").length;
  parts.summary.textContent = fillIn(data.words.summary, { known, all: questions.length, due: waiting });
  if (!waiting) view.onlyDue = false;
  for (const { details } of view.chips.values()) {
    details.hidden = view.onlyDue && !due.has(details);
    if (view.onlyDue && due.has(details)) details.open = true;
  }
  parts.due.textContent = data.words["only-due"];
  parts.due.setAttribute("aria-pressed", String(view.onlyDue));
  parts.due.disabled = !waiting;
  parts.forget.textContent = view.forgotten ? data.words.undo : data.words.forget;
  parts.forget.disabled = !view.forgotten && !Object.keys(answers).length;
}

/** The page begins with two questions: on the first chapter of which any is due, or else new. */
function openFirst(view, due) {
  if (view.opened) return;
  view.opened = true;
  const chips = [...view.chips.values()];
  const first = chips.find(({ details }) => due.has(details)) ?? chips.find(({ chip }) => chip.dataset.state === "new");
  if (first) first.details.open = true;
}

export default viewComponent(createView, (view, data) => {
  const text = new TextDecoder().decode(data);
  if (view.text === text) return; // a run of the page: keep the answers on the screen
  view.text = text;
  view.data = JSON.parse(text);
  render(view);
});
