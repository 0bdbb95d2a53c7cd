// Files of the site in the browser's cache, each under its SHA-256 digest, so that a second visit loads nothing: the
// service worker (service_worker.js) answers from the same cache.

/** The folder of the site, wherever it is published. */
export const ROOT = new URL(".", import.meta.url);

const cacheName = `attention-atlas ${ROOT.pathname}`;

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
