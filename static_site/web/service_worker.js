// Answers from the browser's cache, where every file lies under its digest (files.js).

const { FILES, SMALL } = self; // digests by path, and paths kept from the start: set above by static_site/files.py

const ROOT = new URL(".", self.location);
const CACHE = `attention-atlas ${ROOT.pathname}`;
const keyOf = (sha256) => new URL(`by-digest/${sha256}`, ROOT).href;

async function digestOf(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Fetch a file and keep it, unless it is here; a host that still serves an older one makes the installation fail. */
async function keep(path) {
  const cache = await caches.open(CACHE);
  if (await cache.match(keyOf(FILES[path]))) return;
  const response = await fetch(new URL(path, ROOT), { cache: "no-cache" });
  const bytes = await response.clone().arrayBuffer();
  if (!response.ok || (await digestOf(bytes)) !== FILES[path]) throw new Error(`${path} is not the file that belongs to this site`);
  await cache.put(keyOf(FILES[path]), new Response(bytes, { headers: { "Content-Type": response.headers.get("Content-Type") } }));
}

self.addEventListener("install", (event) => event.waitUntil(Promise.all(SMALL.map(keep))));

self.addEventListener("activate", (event) => {
  const forget = async () => {
    const cache = await caches.open(CACHE);
    const known = new Set(Object.values(FILES).map(keyOf));
    const old = (await cache.keys()).filter(({ url }) => !known.has(url));
    await Promise.all(old.map((request) => cache.delete(request)));
    await self.clients.claim();
  };
  event.waitUntil(forget());
});

self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== "GET" || url.origin !== ROOT.origin || !url.pathname.startsWith(ROOT.pathname)) return;
  const path = decodeURIComponent(url.pathname.slice(ROOT.pathname.length)).replace(/(^|\/)$/, "$1index.html");
  if (!(path in FILES)) return;
  const answer = async () => (await (await caches.open(CACHE)).match(keyOf(FILES[path]))) ?? fetch(event.request);
  event.respondWith(answer());
});
