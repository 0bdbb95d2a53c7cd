// Answers from the browser's cache, where every file lies under its digest (files.js).

// Set above by static_site/files.py: digests by path, and the paths kept from the start, by language; "" for those of all.
const { FILES, SMALL } = self;

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

/** Keep the small files that pages of some languages need. */
const keepSmall = (languages) => Promise.all(["", ...languages].flatMap((language) => SMALL[language] ?? []).map(keep));
const languageOf = ({ url }) => url.slice(ROOT.href.length).split("/")[0];

self.addEventListener("install", (event) => {
  const open = self.clients.matchAll({ includeUncontrolled: true });
  event.waitUntil(open.then((pages) => keepSmall(new Set(pages.map(languageOf)))));
});

/** A page asks for the files of its language: it may be another than that of the first visit. */
self.addEventListener("message", (event) => {
  const [port] = event.ports;
  event.waitUntil(keepSmall([languageOf(event.source)]).then(() => port.postMessage(true), () => port.postMessage(false)));
});

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
