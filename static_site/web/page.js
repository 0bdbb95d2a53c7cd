// What every page does: words, numbers, the service worker, badges of claims, and controls whose values stand in the address
// and in the link to the app, so that a link shows them again.

import { makeWords } from "./components/attention_view/tokens.js";
import { ROOT } from "./files.js";

/** The page's data, and its words as `makeWords` reads them. */
export function readPage() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { lang } = document.documentElement;
  const words = makeWords(data.words, lang);
  const whole = new Intl.NumberFormat(lang, { maximumFractionDigits: 0 });
  const tenth = new Intl.NumberFormat(lang, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
  const part = (name) => document.querySelector(`[data-part="${name}"]`);
  return { data, words, language: lang, part, whole: (value) => whole.format(value), megabytes: (bytes) => tenth.format(bytes / 1e6), number: (value) => words.plain(value), digits: minus(new Intl.NumberFormat(lang)), decimals: (value, count) => minus(new Intl.NumberFormat(lang, { minimumFractionDigits: count, maximumFractionDigits: count, signDisplay: "negative" }))(value) };
}

const minus = (format) => (value) => format.format(value).replace("-", "−");

/** Keep the small files for a visit without a network; false where this browser cannot, or the host's files differ. */
export async function keepSite() {
  if (!navigator.serviceWorker || !globalThis.caches) return false;
  const options = { scope: ROOT.pathname, updateViaCache: "none" };
  const registration = await navigator.serviceWorker.register(new URL("service_worker.js", ROOT), options);
  const worker = registration?.installing ?? registration?.waiting;
  if (!worker || registration.active) return Boolean(registration?.active);
  return new Promise((resolve) => {
    const look = () => {
      if (worker.state === "activated") resolve(true);
      else if (worker.state === "redundant") resolve(false);
    };
    worker.addEventListener("statechange", look);
    look();
  });
}

/**
 * A claim's badge: its statement, which may hold formulas as MathML, and the number measured, with the limit it must keep.
 */
export function renderClaim(node, { words }, statement, measured, limit) {
  const holds = measured <= limit;
  const text = (name) => words.text(name, { measured: words.number(measured), limit: words.number(limit) });
  node.dataset.holds = holds;
  node.dataset.measured = measured;
  node.title = `${words.text(holds ? "holds" : "fails")} ${text("measured.off-by")}`;
  node.innerHTML = `${holds ? "✓" : "✗"} ${statement} ${text("badge.off-by")}`;
}

/**
 * Bind the page's form; every control is a range whose name is that of the app's control.
 *
 * @param onChange called with the values by name, at once and at each change
 * @param limits called with the values before each `onChange`, to give {name: {max, step}} of ranges that depend on others
 * @param address how a value stands in the app's address, by name
 * @param formats how the value of a range is written beside its label, by name; as a number unless given
 */
export function bindControls(page, onChange, { limits = () => ({}), formats = {}, address = {} } = {}) {
  const form = page.part("form");
  const fields = [...form.elements].filter(({ name }) => name);
  const initial = Object.fromEntries(fields.map(({ name, value }) => [name, value]));
  const values = () => Object.fromEntries(fields.map(({ name, value }) => [name, Number(value)]));

  /** What is no number in the address is left out; a range keeps within its ends by itself. */
  function read() {
    const given = new URLSearchParams(location.hash.slice(1));
    for (const field of fields) {
      const value = given.get(field.name) ?? initial[field.name];
      field.value = value.trim() && Number.isFinite(Number(value)) ? value : initial[field.name];
    }
  }

  function show() {
    for (const [name, ends] of Object.entries(limits(values()))) Object.assign(form.elements[name], ends);
    const now = values();
    for (const field of fields) {
      const text = (formats[field.name] ?? page.digits)(now[field.name]);
      field.parentElement.querySelector("output").textContent = text;
      field.setAttribute("aria-valuetext", text);
    }
    const changed = Object.entries(now).filter(([name, value]) => String(value) !== initial[name]);
    const link = page.part("in-app");
    if (link) link.search = new URLSearchParams(changed.map(([name, value]) => [`${page.data.prefix}-${name}`, address[name]?.(value) ?? value]));
    onChange(now);
    document.documentElement.dataset.ready = "true";
    return changed;
  }

  form.addEventListener("input", () => {
    const hash = new URLSearchParams(show()).toString();
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  const arrive = () => {
    read();
    show();
  };
  globalThis.addEventListener("hashchange", arrive);
  arrive();
}
