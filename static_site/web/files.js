// Files of the site in the browser's cache, each under its SHA-256 digest, so that a second visit loads nothing: the
// service worker (service_worker.js) answers from the same cache.

/** The folder of the site, wherever it is published. */
export const ROOT = new URL(".", import.meta.url);

const cacheName = `attention-atlas ${ROOT.pathname}`;
const keyOf = (sha256) => new URL(`by-digest/${sha256}`, ROOT).href;

/** Outside of https and localhost browsers have no such cache: files are then loaded at every visit. */
const openCache = async () => (globalThis.caches ? caches.open(cacheName) : null);

async function digestOf(bytes) {
  if (!globalThis.crypto?.subtle) return null;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * The bytes of a file.
 *
 * @param {{path: string, bytes: number, sha256: string}} file as the page names it
 * @param {(count: number) => void} arrived is called with the number of bytes that have come since the last call
 */
export async function loadFile({ path, bytes, sha256 }, arrived = () => {}) {
  const cache = await openCache();
  const kept = await cache?.match(keyOf(sha256));
  if (kept) {
    arrived(bytes);
    return kept.arrayBuffer();
  }
  const response = await fetch(new URL(`${path}?${sha256.slice(0, 12)}`, ROOT));
  if (!response.ok) throw new Error(`${path}: ${response.status} ${response.statusText}`);
  const content = await readCounting(response, arrived);
  const digest = await digestOf(content);
  if (digest && digest !== sha256) throw new Error(`${path}: expected the digest ${sha256}, got ${digest}`);
  // A full disk shall not stop the page: the file is loaded anew next time.
  await cache?.put(keyOf(sha256), new Response(content)).catch(() => {});
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
