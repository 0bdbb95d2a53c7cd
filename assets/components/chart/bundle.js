// plotly.js, which takes a browser longer to read than all else on the page: once, and only when a chart is drawn.

let plotly;

/** What the script at this address, relative to the page, calls Plotly; null where the server gave no answer. */
export function loadPlotly(address) {
  plotly ??= new Promise((resolve) => {
    const script = document.createElement("script");
    script.src = new URL(address, document.baseURI);
    script.addEventListener("load", () => resolve(globalThis.Plotly));
    script.addEventListener("error", () => {
      plotly = null; // the next chart tries again
      console.warn(`no answer from ${script.src}`);
      resolve(null);
    });
    document.head.append(script);
  });
  return plotly;
}

/** Have it fetched in a quiet moment, but not read yet. */
export function fetchEarly(address) {
  (globalThis.requestIdleCallback ?? setTimeout)(() => plotly ?? prefetch(address));
}

function prefetch(address) {
  const href = String(new URL(address, document.baseURI));
  if (document.head.querySelector(`link[href="${href}"]`)) return;
  const link = document.createElement("link");
  Object.assign(link, { rel: "prefetch", href });
  document.head.append(link);
}
