// plotly.js, which takes a browser longer to read than all else on the page: once, and only when a chart is drawn.

let plotly;

/** What the script at this address, relative to the page, calls Plotly; null where the server gave no answer. */
export function loadPlotly(address) {
  plotly ??= new Promise((resolve) => {
    if (globalThis.Plotly) return resolve(globalThis.Plotly);
    const script = onItsWay(address) ?? Object.assign(document.createElement("script"), { src: full(address) });
    script.addEventListener("load", () => resolve(globalThis.Plotly));
    script.addEventListener("error", () => {
      plotly = null; // the next chart tries again
      script.remove();
      console.warn(`no answer from ${script.src}`);
      resolve(null);
    });
    if (!script.isConnected) document.head.append(script);
  });
  return plotly;
}

const full = (address) => String(new URL(address, document.baseURI));

/** The first page of a chapter with charts has begun to read it (ui/app/index_page.py). */
const onItsWay = (address) => document.head.querySelector(`script[src="${full(address)}"]`);

/** Have it fetched in a quiet moment, but not read yet. */
export function fetchEarly(address) {
  (globalThis.requestIdleCallback ?? setTimeout)(() => plotly ?? prefetch(address));
}

function prefetch(address) {
  const href = full(address);
  if (onItsWay(address) || document.head.querySelector(`link[href="${href}"]`)) return;
  const link = document.createElement("link");
  Object.assign(link, { rel: "prefetch", href });
  document.head.append(link);
}
