// The chart as a picture file: dark on white, so that it can be read wherever it goes.

import { escapeXml, saveFile } from "../shared/files.js";
import { fitCells } from "./cells.js";
import { readChart } from "./payload.js";
import { PRINTED, templateOf, themeOf } from "./theme.js";

const ARROW = { width: 24, height: 24, path: "M12 16 6.5 10.5l1.8-1.8 2.4 2.5V4h2.6v7.2l2.4-2.5 1.8 1.8zM5 20v-5h2.5v2.5h9V15H19v5z" };

export const saveButton = (view) => ({
  name: "picture",
  title: view.about.words.save,
  icon: ARROW,
  click: (plot) => save(view, plot),
});

/** Drawn anew, but as the reader has turned and enlarged it. */
async function save(view, plot) {
  const { data, layout, about } = readChart(view.bytes);
  const shown = plot._fullLayout;
  for (const name of Object.keys(shown).filter((each) => /^[xy]axis\d*$/.test(each))) {
    layout[name] = { ...layout[name], range: [...shown[name].range], autorange: false };
  }
  const { width, height } = shown;
  const theme = themeOf(view.parts.root);
  const template = templateOf({ ...theme, ...PRINTED });
  fitCells(data, shown, theme.font);
  Object.assign(layout, { template, width, height, paper_bgcolor: PRINTED.paper });
  const address = await globalThis.Plotly.toImage({ data, layout }, { format: "svg", width, height });
  const text = standing(decodeURIComponent(address.slice(address.indexOf(",") + 1)), about.alt);
  saveFile(new Blob([text], { type: "image/svg+xml" }), `${about.file}.svg`);
}

/** With what it shows in words and where it is from; sizes in a unit that all readers of SVG take alike. */
const standing = (svg, alt) =>
  svg
    .replace(/(<svg[^>]*>)/, `$1<title>${escapeXml(alt)}</title><desc>${escapeXml(window.location.href)}</desc>`)
    .replace(/font-size:\s*(\d+)%/g, (_, percent) => `font-size: ${percent / 100}em`);
