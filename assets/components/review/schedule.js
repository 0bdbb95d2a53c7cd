// When a question is due again. What a reader answered stays in the browser.

const KEY = "atlas.review";
const DAY = 24 * 60 * 60 * 1000;
/** Days until a question is due again, after as many right answers in a row; the last holds for all further ones. */
export const DAYS = [1, 3, 7, 21, 60];

/** Answers by the question's id: how many right ones in a row, and when the last was given (ms). */
export function readAnswers() {
  try {
    const found = Object.entries(JSON.parse(localStorage.getItem(KEY)) ?? {});
    return Object.fromEntries(found.filter(([, each]) => Number.isInteger(each?.streak) && Number.isFinite(each?.at)));
  } catch {
    return {}; // nothing stored, or storage is disabled
  }
}

export function storeAnswers(answers) {
  try {
    localStorage.setItem(KEY, JSON.stringify(answers));
  } catch {
    // storage is disabled: questions can be answered, but are not kept
  }
}

/** The time at which an answered question is due: at once after a wrong answer. */
export function dueAt({ streak, at }) {
  return streak > 0 ? at + DAYS[Math.min(streak, DAYS.length) - 1] * DAY : at;
}

/** "new", "due" or "known". */
export function stateOf(answer, now) {
  if (!answer) return "new";
  return dueAt(answer) <= now ? "due" : "known";
}

/** Answers with one more: a right answer that was not due changes nothing, or cramming would look like knowing. */
export function withAnswer(answers, id, right, now) {
  const before = answers[id];
  if (right && stateOf(before, now) === "known") return answers;
  return { ...answers, [id]: { streak: right ? (before?.streak ?? 0) + 1 : 0, at: now } };
}
