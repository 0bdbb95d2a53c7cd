// What every page does: words, numbers, the service worker, and badges of claims.

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
  return { data, words, language: lang, part, whole: (value) => whole.format(value), megabytes: (bytes) => tenth.format(bytes / 1e6), number: (value) => words.plain(value).replace("-", "−") };
}

/** Keep the small files for a visit without a network; false where this browser cannot, or the host's files differ. */
export async function keepSite() {
  if (!navigator.serviceWorker || !globalThis.caches) return false;
  const options = { scope: ROOT.pathname, updateViaCache: "none" };
  const registration = await navigator.serviceWorker.register(new URL("service_worker.js", ROOT), options);
  const worker = registration.active ?? registration.installing ?? registration.waiting;
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = ({ data }) => resolve(data);
    const look = () => {
      if (worker.state === "activated") worker.postMessage("", [port2]);
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
