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
    sendMessage(view);
  }, delay);
}

/** Ask for what is on the screen and not here. Other asks on their way are asked again: an answer may get lost. */
export function requestMissing(view) {
  const wants = [...view.wanted];
  clearTimeout(view.retrying);
  clearTimeout(view.requesting);
  if (!wants.length) return;
  view.retrying = setTimeout(() => {
    view.requested = "";
    requestMissing(view);
  }, RETRY);
  if (JSON.stringify(wants) === view.requested) return;
  view.requesting = setTimeout(() => sendMessage(view), 20);
}

export function sendMessage(view) {
  clearTimeout(view.requesting); // it goes along
  const wants = [...view.wanted];
  const requested = JSON.stringify(wants);
  if (wants.length && requested !== view.requested) view.ask += 1;
  view.requested = requested;
  view.setStateValue?.("view", { turn: view.sentTurn, ask: `${view.name}.${view.ask}`, have: view.store.stamp, wants, cell: view.cell, ...view.state });
}
