// The view in a cell of a notebook: anywidget calls `render` for each cell that shows it, and carries what is said to
// Python (viz_core/view/widget.py) and back.

import { luminance, rgbOf } from "../shared/canvas.js";
import { default as show } from "./main.js";

/**
 * Whether the notebook is light or dark: JupyterLab says so before its styles have come; else by the first colour behind
 * the cell that covers what is behind it.
 */
function schemeBehind(element) {
  const { jpThemeLight } = document.body.dataset;
  if (jpThemeLight) return jpThemeLight === "true" ? "light" : "dark";
  for (let node = element; node instanceof Element; node = node.parentElement) {
    const { backgroundColor } = getComputedStyle(node);
    if (!/, 0\)$|^transparent$/.test(backgroundColor)) return luminance(rgbOf(backgroundColor)) > 0.4 ? "light" : "dark";
  }
  return "light";
}

/**
 * Say something to Python, one thing at a time: while an answer is on its way, only the newest waits. It holds all that
 * was wanted before, so a kernel that is busy with a cell comes back to one question and not to a queue of them.
 */
function makeChannel(model) {
  let underway = false;
  let waiting = null;
  const send = (message) => {
    if (underway) waiting = message;
    else model.send(message);
    underway = true;
  };
  const onAnswer = () => {
    const message = waiting;
    [underway, waiting] = [false, null];
    if (message) send(message);
  };
  return { send, onAnswer };
}

function render({ model, el }, content) {
  const host = document.createElement("div");
  host.dataset.lmSuppressShortcuts = "true"; // JupyterLab's keys are letters, brackets and arrows too
  el.append(host);
  const parentElement = host.attachShadow({ mode: "open" }); // the notebook's styles and the view's stay apart
  parentElement.innerHTML = `${content}<p class="note" role="alert" hidden></p>`;
  const problemLine = parentElement.lastElementChild;
  const { send, onAnswer } = makeChannel(model);
  let data = null;
  let end = null;

  const draw = () => {
    host.dataset.scheme = schemeBehind(el);
    if (data) end = show({ data, parentElement, setStateValue: (_, message) => send(message) });
  };
  const receive = ({ problem }, [bytes]) => {
    problemLine.hidden = !problem;
    problemLine.textContent = problem ?? "";
    if (bytes) {
      data = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      for (const pictures of document.getElementsByClassName(model.get("_pictures"))) pictures.hidden = true;
      draw();
    }
    onAnswer();
  };
  // With the next frame: while JupyterLab changes its theme, nothing has a width.
  const redraw = () => requestAnimationFrame(() => host.dataset.scheme !== schemeBehind(el) && draw());
  const themes = new MutationObserver(redraw); // a notebook's theme is an attribute or class of its body or root
  for (const node of [document.documentElement, document.body]) themes.observe(node, { attributes: true });
  model.on("msg:custom", receive);
  send({});
  return () => {
    themes.disconnect();
    model.off("msg:custom", receive);
    end?.();
  };
}

/** What anywidget takes: `content` is the markup of a view with its style. */
export default function (content) {
  return { render: (context) => render(context, content) };
}
