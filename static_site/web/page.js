// The page's data, words and elements; and files of the site in the browser's cache, each under its SHA-256 digest, so that a
// second visit loads nothing: the service worker (service_worker.js) answers from the same cache.

import { makeWords } from "./components/attention_view/tokens.js";

/** The folder of the site, wherever it is published. */
const ROOT = new URL(".", import.meta.url);

const cacheName = `attention-atlas ${ROOT.pathname}`;

export const data = JSON.parse(document.getElementById("data").textContent);
export const language = document.documentElement.lang;
export const words = makeWords(data.words, language);
export const number = (value) => words.plain(value).replace("-", "−");
export const part = (name) => document.querySelector(`[data-part="${name}"]`);

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

/** The bytes of a file as the page names it; `arrived` is called with the number of those that have come since the last call. */
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
  const counting = new TransformStream({
    transform(part, arriving) {
      arrived(part.byteLength);
      arriving.enqueue(part);
    },
  });
  const content = await new Response(response.body.pipeThrough(counting)).arrayBuffer();
  const digest = await globalThis.crypto?.subtle?.digest("SHA-256", content); // nor this
  const found = digest && btoa(String.fromCharCode(...new Uint8Array(digest)));
  if (digest && found !== sha256) throw new Error(`${path}: expected the digest ${sha256}, got ${found}`);
  // A full disk shall not stop the page: the file is loaded anew next time.
  await cache?.put(address, new Response(content)).catch(() => {});
  return content;
}

/** Bytes that gzip compressed: packed by the build, because many hosts compress nothing. */
export const unzip = (bytes) => new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
