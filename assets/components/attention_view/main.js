// One view of attention: what is open, pinned and pointed at, and when each part is drawn again.

// Pause before keyboard moves are sent to Python or spoken, so that holding an arrow key stays quiet.
const PATIENCE = 250;

const views = new WeakMap();

function createView(parent) {
  const parts = partsOf(parent);
  const view = { parts, open: null, pin: null, cursor: null, turn: 0, sentTurn: 0, payload: null };
  listenToMap(view);
  listenToSentence(view);
  parts.tabs.addEventListener("keydown", (event) => moveInTabs(view, event));
  parts.grid.addEventListener("keydown", (event) => moveInGrid(view, event));
  parts.grid.addEventListener("click", (event) => {
    const button = event.target.closest(".head");
    if (button) openHead(view, addressOf(view, button));
  });
  parts.root.addEventListener("keydown", (event) => {
    // Many keyboards type brackets with AltGr, which some systems report as Ctrl as well.
    if (event.metaKey || (event.ctrlKey && !event.getModifierState("AltGraph"))) return;
    const steps = { "[": -1, "]": 1 }[event.key];
    if (steps) openHead(view, view.payload.neighbour(view.open, steps), PATIENCE);
    else if (event.key === "Escape" && view.pin) setPin(view, view.pin);
    else if (event.key === "Escape") pointAt(view, null);
  });
  watchWidth(view, render);
  return view;
}

function closeView(view) {
  stopWatching(view);
  clearTimeout(view.sending);
  clearTimeout(view.speaking);
  clearTimeout(view.waiting);
}

/** Take new data. The reader may have moved on since Python made it: then the numbers count, not its state. */
function receive(view, bytes) {
  view.payload = readPayload(bytes);
  const { header } = view.payload;
  view.words = makeWords(header.words, header.language);
  view.scale = SCALES[header.scale];
  if (!view.open || header.turn >= view.turn || !view.payload.has(view.open)) {
    const { pin, ...open } = header.view;
    Object.assign(view, { open, pin, turn: header.turn, sentTurn: header.turn });
    view.known = JSON.stringify([open, pin]);
  }
  render(view);
}

/** Everything, from the payload and the width there is. */
function render(view) {
  view.width = view.parts.root.clientWidth;
  if (!view.payload || !view.width) return;
  view.theme = readTheme(view.parts.root);
  renderTabs(view);
  buildGrid(view);
  paintGrid(view);
  renderOpen(view);
}

/** The opened head: its map, its sentence and its names. */
function renderOpen(view) {
  const { parts, words, payload } = view;
  const group = payload.group(view.open.group);
  view.cells = openCells(payload, view.open, words);
  const { rows, columns } = view.cells;
  if (view.cursor && (view.cursor.row >= rows || view.cursor.column >= columns)) view.cursor = null;
  const tokens = { query: group.query_tokens, key: group.key_tokens };
  if (view.pin && view.pin.index >= tokens[view.pin.axis].length) view.pin = null;

  markOpenHead(view);
  parts.headsHint.textContent = words.text("heads_hint");
  parts.grid.setAttribute("aria-label", words.text("heads"));
  parts.queriesLabel.textContent = words.text("queries", { label: group.queries_label });
  parts.keysLabel.textContent = words.text("keys", { label: group.keys_label });
  parts.sentenceTitle.textContent = words.text("sentence_title");
  const labels = { queries: group.queries_label, keys: group.keys_label };
  parts.stage.setAttribute("aria-label", words.text("map_label", { name: headName(view, view.open), ...labels }));
  renderMapNote(view, group);
  drawScale(view);

  view.layout = layOutMap(view.cells, parts.stage.clientWidth, view.theme.font);
  parts.stage.style.height = `${view.layout.height}px`;
  drawCells(parts.cells, view.cells, view.layout, view.scale, view.theme.paper);
  buildSentence(view);
  renderPointed(view);
}

/** Why the cells are not exact. A short wait goes unsaid: a line that comes and goes would make the page jump. */
function renderMapNote(view, group) {
  const { mapNote } = view.parts;
  clearTimeout(view.waiting);
  mapNote.hidden = !group.overview;
  mapNote.textContent = view.words.text(group.overview ? "overview" : "waiting");
  if (group.overview || view.cells.exact) return;
  view.waiting = setTimeout(() => {
    mapNote.hidden = false;
  }, 2 * PATIENCE);
}

function renderPointed(view) {
  renderPointer(view);
  renderSentence(view);
}

/** Open a head; a pin stays while the tokens stay the same. */
function openHead(view, address, delay = 0) {
  const { group, layer, head } = address;
  const moved = group !== view.open.group;
  view.open = { group, layer, head };
  if (moved) Object.assign(view, { pin: null, cursor: null });
  if (moved) render(view);
  else renderOpen(view);
  announce(view);
  send(view, delay);
}

/** Point at {row, column, by} or at nothing. */
function pointAt(view, cursor) {
  if (samePlace(cursor, view.cursor)) return;
  view.cursor = cursor;
  renderPointed(view);
}

/** Pin the first token of a cell's row or column, or let go whichever is pinned there. */
function togglePin(view, axis, bin) {
  const own = axis === "query" ? view.cells.queries : view.cells.keys;
  const held = view.pin?.axis === axis && own.binOf(view.pin.index) === bin;
  setPin(view, held ? view.pin : { axis, index: own.first(bin) });
}

/** Pin a token, or let it go if it was the pinned one. */
function setPin(view, pin) {
  const same = view.pin?.axis === pin.axis && view.pin.index === pin.index;
  view.pin = same ? null : pin;
  renderPointed(view);
  announce(view);
  send(view);
}

/** Tell Python what is open and pinned, once the reader pauses and only if that is news. */
function send(view, delay = 0) {
  view.turn = view.sentTurn + 1;
  clearTimeout(view.sending);
  view.sending = setTimeout(() => {
    const now = JSON.stringify([view.open, view.pin]);
    if (now === view.known) {
      view.turn = view.sentTurn;
      return;
    }
    view.known = now;
    view.sentTurn = view.turn;
    view.setStateValue("view", { ...view.open, pin: view.pin, turn: view.turn });
  }, delay);
}

export default function (component) {
  const { data, setStateValue } = component;
  if (!data) return undefined;
  const { view, unmount } = mountView(views, component, createView, closeView);
  view.setStateValue = setStateValue;
  receive(view, data);
  return unmount;
}
