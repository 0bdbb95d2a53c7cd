// Telling Python what has changed and what is wanted.

const RETRY = 8000; // an answer may be lost when two runs of the page overlap

/** Tell Python what has changed, once the reader pauses and only if that is news. */
export function send(view, delay = 0) {
  view.turn = view.sentTurn + 1;
  clearTimeout(view.sending);
  view.sending = setTimeout(() => {
    const now = JSON.stringify(view.state);
    if (now === view.known) {
      view.turn = view.sentTurn;
      return;
    }
    view.known = now;
    view.sentTurn = view.turn;
    tell(view);
  }, delay);
}

/** Ask for what is on the screen and not here. Other asks on their way are asked again: an answer may get lost. */
export function askForWanted(view) {
  const wants = [...view.wanted];
  clearTimeout(view.retrying);
  clearTimeout(view.asking);
  if (!wants.length) return;
  view.retrying = setTimeout(() => {
    view.asked = "";
    askForWanted(view);
  }, RETRY);
  if (JSON.stringify(wants) === view.asked) return;
  view.asking = setTimeout(() => tell(view), 20);
}

export function tell(view) {
  clearTimeout(view.asking); // it goes along
  const wants = [...view.wanted];
  const asked = JSON.stringify(wants);
  if (wants.length && asked !== view.asked) view.ask += 1;
  view.asked = asked;
  view.setStateValue?.("view", { turn: view.sentTurn, ask: `${view.name}.${view.ask}`, have: view.store.stamp, wants, cell: view.cell, ...view.state });
}
