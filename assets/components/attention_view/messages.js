// Messages to Python: the state and requests for parts.

const RETRY = 8000; // an answer may be lost when two runs of the page overlap

/** Send the state to Python after a pause, if it has changed. */
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

/** Request parts that are on the screen and have not arrived; repeated after a while, as answers may get lost. */
export function requestMissing(view) {
  const wants = [...view.wanted];
  clearTimeout(view.retrying);
  clearTimeout(view.requesting);
  if (!wants.length) {
    view.requested = ""; // all of it is here: the same part may be requested anew, a second file for example
    return;
  }
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
  if (wants.length && requested !== view.requested) view.numRequests += 1;
  view.requested = requested;
  view.setStateValue?.("view", { turn: view.sentTurn, id: `${view.name}.${view.numRequests}`, have: view.store.stamp, wants, cell: view.cell, ...view.state });
}
