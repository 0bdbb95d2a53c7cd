// What is open, pinned and how it is looked at (viz_core/figures/view_state.py), and telling Python of it.

// Pause before keyboard moves are sent to Python or spoken, so that holding an arrow key stays quiet.
const PATIENCE = 250;
const RETRY = 8000; // an answer may be lost when two runs of the page overlap

/** Heads the map combines: [layer, head] each. */
function chosenHeads(view) {
  const { layer, head, look } = view.state;
  const group = openGroup(view);
  if (look.heads === "one") return [[layer, head]];
  if (look.heads === "all") return allHeads(group);
  if (look.heads === "layer") return allHeads(group).filter(([l]) => l === layer);
  return readHeads(look.heads).filter(([l, h]) => hasHead(group, l, h));
}

const readHeads = (text) => text.split("_").map((head) => head.split(".").map(Number));
const writeHeads = (heads) => heads.map((head) => head.join(".")).join("_");

/** What the open head is compared with: {input, layer, head}, or null. */
function comparedWith(view) {
  const { compare, other } = view.state.look;
  if (compare === "off") return null;
  if (other === "none") return null;
  const [input, layer, head] = other.split(".").map(Number);
  const group = groupOf(view, input, view.state.group);
  return group && hasHead(group, layer, head) ? { input, layer, head } : null;
}

/** The part of the map that is shown, in rows and columns of tokens or words; null for all of it. */
function zoomOf(view) {
  const { zoom } = view.state.look;
  if (zoom === "whole") return null;
  const [row, column, rows, columns] = zoom.split(".").map(Number);
  return { row, column, rows, columns };
}

const pinsOf = (view) => view.state.pins.map((pin) => ({ axis: pin[0] === "q" ? "query" : "key", index: Number(pin.slice(1)) }));

/** Open a head; pins stay while the tokens stay the same. */
function openHead(view, { group, layer, head }, delay = 0) {
  const { state } = view;
  const moved = group !== state.group;
  Object.assign(state, { group, layer, head });
  if (moved) {
    Object.assign(state, { pins: [] });
    Object.assign(state.look, { zoom: "whole", heads: "one", other: "none", filter: "" });
    view.cursor = null;
    // What this kind of map is not measured by cannot order it.
    if (!measuresOf(view).includes(state.look.sort)) state.look.sort = "layer";
  }
  render(view);
  announce(view);
  send(view, delay);
}

/** Look at it another way. */
function setLook(view, changes, delay = 0) {
  Object.assign(view.state.look, changes);
  render(view);
  send(view, delay);
}

/** Pin a unit (token or word) of one side, or let it go; `more` adds it to those pinned already. */
function togglePin(view, axis, unit, more) {
  const side = view.axes[axis];
  const letter = axis === "query" ? "q" : "k";
  const pin = `${letter}${side.first(unit)}`;
  const here = (each) => each[0] === letter && side.of(Number(each.slice(1))) === unit;
  const others = view.state.pins.filter((each) => each[0] === letter && !here(each));
  const held = view.state.pins.some(here);
  if (held) view.state.pins = more ? others : [];
  else view.state.pins = more ? [...others, pin].slice(-64) : [pin];
  renderPinned(view);
  announce(view);
  send(view);
}

function letGo(view) {
  view.state.pins = [];
  renderPinned(view);
  send(view);
}

/** Over a picture everything shows what the pinned tokens look at. */
const renderPinned = (view) => (onPicture(view) ? render : renderPointed)(view);

/** Tell Python what has changed, once the reader pauses and only if that is news. */
function send(view, delay = 0) {
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
function askForWanted(view) {
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

function tell(view) {
  clearTimeout(view.asking); // it goes along
  const wants = [...view.wanted];
  const asked = JSON.stringify(wants);
  if (wants.length && asked !== view.asked) view.ask += 1;
  view.asked = asked;
  view.setStateValue?.("view", { turn: view.sentTurn, ask: `${view.name}.${view.ask}`, have: view.store.stamp, wants, ...view.state });
}
