// Full screen: the drawing moves into a dialog over the page and back, and is never made anew.

import { stageHeight, typeScale } from "../shared/stage.js";

const LEAST = 100; // pixels: a narrower chart has nothing but its axes
const AROUND = 70; // of a square: legend and titles
const CORNERS = {
  width: 24,
  height: 24,
  path: "M3 3h6v2.5H5.5V9H3zM15 3h6v6h-2.5V5.5H15zM3 15h2.5v3.5H9V21H3zM18.5 15H21v6h-6v-2.5h3.5z",
};

export const wholeButton = (view) => ({
  name: "whole",
  title: view.about.words.whole,
  icon: CORNERS,
  click: () => toggle(view),
});

/** Put the drawing back once the dialog is closed, by the button or by Escape. */
export function listenWhole(view) {
  const { root, plot, whole } = view.parts;
  whole.addEventListener("close", () => {
    root.prepend(plot);
    show(view);
  });
}

function toggle(view) {
  const { plot, whole } = view.parts;
  if (whole.open) {
    whole.close();
    return;
  }
  whole.showModal();
  whole.append(plot);
  show(view);
}

async function show(view) {
  await view.render();
  view.parts.plot.querySelector(`.modebar-btn[data-title="${CSS.escape(view.about.words.whole)}"]`)?.focus();
}

const widthOf = (root) => Math.max(root.clientWidth, LEAST);

/** How high its place in the page is, in pixels. */
export const placeHeight = ({ parts, about }) =>
  stageHeight(parts.root) ?? (about.square ? Math.min(about.height, widthOf(parts.root) + AROUND) : about.height);

/** How many times larger it is shown than drawn: its type too, where it fills the window. */
export const scaleOf = ({ parts }) => (stageHeight(parts.root) === null || parts.whole.open ? 1 : typeScale());

/** How large to draw, in pixels. */
export function roomOf({ parts, about }) {
  const { root, whole } = parts;
  const scale = scaleOf({ parts });
  if (!whole.open) return { width: widthOf(root) / scale, height: placeHeight({ parts, about }) / scale };
  const { paddingLeft, paddingTop } = getComputedStyle(whole);
  const inside = (length, padding) => Math.floor(length - 2 * parseFloat(padding));
  return { width: inside(whole.clientWidth, paddingLeft), height: inside(whole.clientHeight, paddingTop) };
}
