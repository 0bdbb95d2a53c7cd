// How much each head differs between the two texts, from Python (viz_core/view/token_alignment.py).

import { isBeside } from "./state.js";
import { groupOf, partOf } from "./store.js";

/** Whether there is a second text whose maps come whole, so that heads can be ordered by their change. */
export const canChange = (view) => view.store.base.groups.length > 1 && !isBeside(view) && [0, 1].every((input) => groupOf(view, input, view.state.group)?.exact);

/** Change of a head between the texts, 0 to 1; null until it is here; it is requested. */
export const changeOf = (view, layer, head) => (canChange(view) ? (partOf(view, `change 0 ${view.state.group} ${layer}`)?.changes[head] ?? null) : null);
