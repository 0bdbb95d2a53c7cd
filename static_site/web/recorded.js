// A chapter whose figures are recorded: sliders choose the frame, and what differs from the frame before is drawn again. The
// address holds their places, and the link to the app their values.

import { data, keepSite, loadFile, part, unzip, words } from "./page.js";

const [host, form] = [part("figure"), part("form")];

let bytes = []; // of components, which parts name by their place

/** The element of a part, made anew, and what shows another part of the same kind in it. */
async function makePart({ component, inPage, tag = "div", className = "", open = false }) {
  const node = Object.assign(document.createElement(tag), { className: component ? "component" : className, open });
  if (!component) return { node, show: ({ html, parts }) => (parts ? showParts(node, parts) : (node.innerHTML = html)) };
  const parent = inPage ? node : node.attachShadow({ mode: "open" });
  parent.innerHTML = (await import(`./components/${component}/view.js`)).default;
  const { default: show } = await import(`./components/${component}/main.js`);
  const nothing = () => {};
  return { node, show: (one) => show({ data: bytes[one.data], parentElement: parent, setTriggerValue: nothing, setStateValue: nothing }) };
}

const kindOf = ({ component, tag, className, parts }) => component ?? `${tag} ${className} ${Boolean(parts)}`;

/** Show parts in a host: one of the same kind at the same place is changed, any other is made anew. */
async function showParts(parent, parts) {
  parent.drawn ??= [];
  for (const [i, one] of parts.entries()) {
    let made = parent.drawn[i];
    if (made?.kind !== kindOf(one)) {
      const next = { kind: kindOf(one), ...(await makePart(one)) };
      if (made) made.node.replaceWith(next.node);
      else parent.append(next.node);
      made = parent.drawn[i] = next;
    }
    await made.show(one);
  }
  for (const { node } of parent.drawn.splice(parts.length)) node.remove();
}

async function load() {
  const [text] = await Promise.all([loadFile(data.file).then(unzip), import("./vendor/plotly.js")]); // charts look for it
  const file = JSON.parse(new TextDecoder().decode(text));
  bytes = file.data.map((each) => Uint8Array.from(atob(each), (sign) => sign.codePointAt(0)));
  return file.frames;
}

function fail({ message }) {
  host.className = "problem";
  host.textContent = words.text("figures-failed", { reason: message });
}

const frames = load();
let last = Promise.resolve();
let newest;

/** Draw a frame after those before it. A slider may be faster than a figure: only the newest that waits is drawn. */
function draw(place) {
  newest = place;
  last = Promise.all([frames, last]).then(async ([drawn]) => {
    if (newest !== place) return;
    await showParts(host, drawn[place]);
    host.dataset.frame = place; // for tests
  }, fail);
}

const fields = data.controls.map((control) => ({ ...control, field: form.elements[control.name] }));
const initial = fields.map(({ field }) => field.value);

/** Show the frame of the sliders; those that are not where the page opens. */
function show() {
  for (const { field, shown } of fields) {
    field.parentElement.querySelector("output").textContent = shown[field.value];
    field.setAttribute("aria-valuetext", shown[field.value]);
  }
  const changed = fields.filter(({ field }, i) => field.value !== initial[i]);
  if (part("in-app")) part("in-app").search = new URLSearchParams(changed.map(({ name, field, values }) => [`${data.prefix}-${name}`, values[field.value]]));
  draw(fields.reduce((place, { field, values }) => place * values.length + Number(field.value), 0));
  return changed;
}

/** A place that is no number is left out; a range keeps within its ends by itself. */
function arrive() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const [i, { name, field }] of fields.entries()) {
    const place = given.get(name)?.trim();
    field.value = place && Number.isFinite(Number(place)) ? place : initial[i];
  }
  show();
}

form.addEventListener("input", () => {
  const hash = new URLSearchParams(show().map(({ name, field }) => [name, field.value])).toString();
  history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
});
globalThis.addEventListener("hashchange", arrive);
arrive();
document.documentElement.dataset.ready = "true";
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(newest));
keepSite();
