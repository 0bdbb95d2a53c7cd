// Keyboard shortcuts of the whole view, except while typing.

import { stepHead } from "./heads.js";
import { unpin } from "./actions.js";
import { pointAt } from "./pointer.js";
import { zoomTo } from "./zoom.js";

const TYPED_IN = "input, textarea, select, [contenteditable], [role=textbox], [role=combobox], [role=dialog]";

/** Listen to keys pressed in the view, and on the page where nothing else handles them. Returns a function that stops. */
export function listenToKeys(view) {
  const { root } = view.parts;
  root.addEventListener("keydown", (event) => onKey(view, event));
  // In a notebook the page is not the view's: its cells have keys of their own.
  if (root.getRootNode().host?.dataset.lmSuppressShortcuts) return () => {};
  const onKeydown = (event) => {
    const path = event.composedPath();
    if (event.defaultPrevented || path.includes(root) || !root.clientWidth) return;
    if (path.some((node) => node instanceof Element && node.matches(TYPED_IN))) return;
    if (event.key !== "Escape") onKey(view, event);
  };
  document.addEventListener("keydown", onKeydown);
  return () => document.removeEventListener("keydown", onKeydown);
}

function onKey(view, event) {
  // Many keyboards type brackets with AltGr, which some systems report as Ctrl as well.
  if (event.metaKey || (event.ctrlKey && !event.getModifierState("AltGraph"))) return;
  const { parts, state } = view;
  const steps = { "[": -1, "]": 1 }[event.key];
  if (steps) stepHead(view, steps);
  else if (event.key === "/") {
    event.preventDefault();
    parts.filter.focus();
  } else if (event.key === "f" && !parts.search.hidden) {
    event.preventDefault();
    parts.search.focus();
  } else if (event.key !== "Escape") return;
  else if (parts.more.open || parts.exports.open) parts.more.open = parts.exports.open = false;
  else if (state.pins.length) unpin(view);
  else if (state.display.zoom !== "whole") zoomTo(view, null);
  else pointAt(view, null);
}
