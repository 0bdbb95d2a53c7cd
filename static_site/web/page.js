// What every page does: words, numbers, badges of claims; and files of the site in the browser's cache, each under its SHA-256
// digest, so that a second visit loads nothing: the service worker (service_worker.js) answers from the same cache.

import { makeWords } from "./components/attention_view/tokens.js";

/** The folder of the site, wherever it is published. */
export const ROOT = new URL(".", import.meta.url);

const cacheName = `attention-atlas ${ROOT.pathname}`;

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

/**
 * The bytes of a file.
 *
 * @param {{path: string, bytes: number, sha256: string}} file as the page names it
 * @param {(count: number) => void} arrived is called with the number of bytes that have come since the last call
 */
export async function loadFile({ path, bytes, sha256 }, arrived = () => {}) {
  const cache = await globalThis.caches?.open(cacheName); // outside of https and localhost browsers have none
  const address = new URL(`${path}?${encodeURIComponent(sha256)}`, ROOT).href;
  const kept = await cache?.match(address);
  if (kept) {
    arrived(bytes);
    return kept.arrayBuffer();
  }
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${path}: ${response.status} ${response.statusText}`);
  const content = await readCounting(response, arrived);
  const digest = await globalThis.crypto?.subtle?.digest("SHA-256", content); // nor this
  const found = digest && btoa(String.fromCharCode(...new Uint8Array(digest)));
  if (digest && found !== sha256) throw new Error(`${path}: expected the digest ${sha256}, got ${found}`);
  // A full disk shall not stop the page: the file is loaded anew next time.
  await cache?.put(address, new Response(content)).catch(() => {});
  return content;
}

async function readCounting(response, arrived) {
  const parts = [];
  const reader = response.body.getReader();
  for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
    parts.push(value);
    arrived(value.byteLength);
  }
  return new Blob(parts).arrayBuffer();
}

/** Bytes that gzip compressed: packed by the build, because many hosts compress nothing. */
export const unzip = (bytes) => new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
