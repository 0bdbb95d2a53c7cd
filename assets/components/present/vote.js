// A question put to a class: votes are counted before its answer is revealed.
//
// Until then a click on an answer, or the key of its number, is a vote; the one with most is what the page is answered
// with. The counts are drawn by the style sheet beside Streamlit's own answers.

const counts = new Map(); // votes of each answer, by the key of its question

const answersOf = (figure) => [...figure.querySelectorAll('[role="radiogroup"] label')];

/** Whether it takes votes: it has answers, and none is chosen. */
export const isOpen = (figure) => answersOf(figure).length > 0 && !figure.querySelector('[role="radiogroup"] input:checked');

const keyOf = (figure) => [...figure.classList].find((name) => name.startsWith("st-key-"));

const votesOf = (figure) => counts.get(keyOf(figure)) ?? answersOf(figure).map(() => 0);

/** Add a vote for an answer, by its number from 0; returns whether there is such an answer. */
export function vote(figure, number) {
  const votes = votesOf(figure);
  if (!(number in votes)) return false;
  votes[number] += 1;
  counts.set(keyOf(figure), votes);
  showVotes(figure);
  return true;
}

/** Write the counts beside the answers; they stay once the answer is revealed. */
export function showVotes(figure) {
  const votes = votesOf(figure);
  const all = votes.reduce((sum, each) => sum + each, 0);
  answersOf(figure).forEach((answer, i) => {
    answer.dataset.number = i + 1;
    if (!all) return;
    answer.dataset.votes = votes[i];
    answer.style.setProperty("--share", votes[i] / all);
  });
  return all;
}

/** Forget the counts, and take them from the answers. */
export function forgetVotes() {
  counts.clear();
  for (const answer of document.querySelectorAll("label[data-number]")) {
    delete answer.dataset.number;
    delete answer.dataset.votes;
    answer.style.removeProperty("--share");
  }
}

/** The number of the answer that was clicked; undefined where none was. */
export const answerAt = (figure, node) => {
  const number = answersOf(figure).findIndex((answer) => answer.contains(node));
  return number < 0 ? undefined : number;
};

/** Choose the answer with most votes, the first of those with as many. */
export function reveal(figure) {
  const votes = votesOf(figure);
  answersOf(figure)[votes.indexOf(Math.max(...votes))].querySelector("input").click();
}
