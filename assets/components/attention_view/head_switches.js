// Heads switched off and on: a switch on each thumbnail, and one beside the open head's name.

import { element } from "../shared/elements.js";
import { headName } from "./state.js";

const headBeside = (made) => made.closest(".cell").firstChild;

const placeOf = ({ group }, layer, head) => `${group}.${layer}.${head}`;

/** A thumbnail with its switch; alone where heads cannot be switched. */
export function withSwitch(view, button) {
  if (!view.store.switches) return button;
  const cell = element("span", "cell", { role: "none" });
  const made = element("button", "switch", { type: "button", role: "switch", tabindex: -1 });
  const place = element("span", "", { role: "gridcell" });
  place.append(made);
  cell.append(button, place);
  return cell;
}

/** Which heads are off. */
export function markSwitches(view) {
  const { parts, state, store, words } = view;
  const { switches } = store;
  const mark = (made, layer, head, text) => {
    const off = switches.has(placeOf(state, layer, head));
    made.setAttribute("aria-checked", !off);
    const label = words.text(off ? "switch_on" : "switch_off", { head: headName(view, { group: state.group, layer, head }) });
    made.setAttribute("aria-label", label);
    made.title = label;
    if (text) made.textContent = words.text(off ? "turn_on" : "turn_off");
    return off;
  };
  parts.openSwitch.hidden = !switches;
  if (!switches) return;
  mark(parts.openSwitch, state.layer, state.head, true);
  for (const made of parts.grid.querySelectorAll(".switch")) {
    const button = headBeside(made);
    button.classList.toggle("off", mark(made, Number(button.dataset.layer), Number(button.dataset.head), false));
  }
}

/** Switch a head off or on at once, and notify Python. */
function turn(view, layer, head) {
  const place = placeOf(view.state, layer, head);
  const { switches } = view.store;
  if (!switches.delete(place)) switches.add(place);
  markSwitches(view);
  view.setTriggerValue?.("switch", place);
}

export function listenToSwitches(view) {
  const { grid, openSwitch } = view.parts;
  grid.addEventListener("click", (event) => {
    const made = event.target.closest?.(".switch");
    if (!made) return;
    const { layer, head } = headBeside(made).dataset;
    turn(view, Number(layer), Number(head));
  });
  openSwitch.addEventListener("click", () => turn(view, view.state.layer, view.state.head));
}
