// Answers from the browser's cache, where every file lies under its address with its digest (page.js).

// Set above by static_site/files.py: digests by path, and the paths kept from the start, by language; "" for those of all.
const { FILES, SMALL } = self;

const ROOT = new URL(".", self.location);
const CACHE = `attention-atlas ${ROOT.pathname}`;
const addressOf = (path) => new URL(`${path}?${encodeURIComponent(FILES[path])}`, ROOT).href;

/** Fetch a file and keep it, unless it is here; a host that still serves an older one makes the installation fail. */
async function keep(path) {
  const cache = await caches.open(CACHE);
  const address = addressOf(path);
  if (await cache.match(address)) return;
  const response = await fetch(new URL(path, ROOT), { cache: "no-cache", integrity: `sha256-${FILES[path]}` });
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  await cache.put(address, new Response(response.body, { headers: { "Content-Type": response.headers.get("Content-Type") } })); // no redirected one
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
    const known = new Set(Object.keys(FILES).map(addressOf));
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
  const answer = async () => (await (await caches.open(CACHE)).match(addressOf(path))) ?? fetch(event.request);
  event.respondWith(answer());
});
