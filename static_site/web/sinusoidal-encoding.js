// The page of sinusoids: the table and its columns, computed here, with the claims about them.

import { COLOURS, drawCurves, drawTable } from "./figures.js";
import { angularFrequencies, normError, offsetError, sinusoids, startPositions, wavelengthError } from "./formulas.js";
import { bindControls, keepSite, readPage, renderClaim } from "./page.js";

const SHOWN = 4; // columns drawn as curves
const LATER = 150; // milliseconds without a change, after which claims are measured: they read the whole table
const page = readPage();
const { data, words, part } = page;
const heatmapMarkup = part("heatmap-markup").innerHTML;
let measuring = 0;

function show({ n, d, base, columns }) {
  const table = sinusoids(n, d, base, Float64Array);
  const frequencies = angularFrequencies(d, base);
  const wavelength = (column) => page.decimals((2 * Math.PI) / frequencies[column >> 1], 2);
  const named = (name, values) => ({ ...data.heatmap, alt: words.text(`alt.${name}`, values), cell: data.cells[name] });
  drawTable(part("table"), heatmapMarkup, page.language, {
    rows: n, columns: d, values: table, frequencies,
    rowTitle: words.text("figure.position"), columnTitle: words.text("figure.dimension"),
    words: named("table", { n: page.digits(n), d: page.digits(d), longest: page.digits((2 * Math.PI) / frequencies.at(-1)) }),
  });
  const shown = Array.from({ length: Math.min(SHOWN, d) }, (_, i) => columns + i).filter((column) => column < d);
  const series = shown.map((column, i) => ({
    name: words.text("figure.column", { column, wavelength: wavelength(column) }), colour: COLOURS[i], dash: i % 2 ? "6 3" : "",
    points: Array.from({ length: n }, (_, row) => [row, table[row * d + column]]),
  }));
  const alt = words.text("alt.curves", { n: page.digits(n), summary: words.row(shown.map(String)) });
  drawCurves(part("curves"), { alt, series, x: { title: words.text("figure.position"), low: 0, high: Math.max(1, n - 1) }, y: { title: words.text("figure.value"), low: -1, high: 1 } }, page.digits);
  part("look-curves").textContent = words.text("look.curves", { factor: page.decimals(base ** (2 / d), 3) });
  clearTimeout(measuring);
  measuring = setTimeout(() => showClaims(table, n, d, base, wavelength), LATER);
}

function showClaims(table, n, d, base, wavelength) {
  const paired = d - (d % 2);
  const claim = (name, text, values, measured, limit) => renderClaim(part(`claim-${name}`), page, words.text(`claim.${text}`, values), measured, limit);
  claim("norm", d % 2 ? "norm-odd" : "norm", { norm: page.digits(d / 2), pairs: (d - 1) / 2 }, normError(table, n, d, base), 1e-10);
  for (const name of ["wavelength", "offset"]) part(`claim-${name}`).hidden = n === 1;
  if (n > 1) {
    claim("wavelength", "wavelength", { shortest: wavelength(0), longest: wavelength(paired - 1) }, wavelengthError(table, n, d, base), 1e-9);
    claim("offset", d % 2 ? "offset-odd" : "offset", { count: startPositions(n).length, paired }, offsetError(table, n, d), 1e-10);
  }
  document.documentElement.dataset.measured = [n, d, base].join();
}

bindControls(page, show, {
  limits: ({ d }) => ({ columns: { max: Math.max(0, d - SHOWN) } }),
  formats: { columns: (first) => `${first}–${first + SHOWN - 1}` },
});
keepSite().catch(() => false);
