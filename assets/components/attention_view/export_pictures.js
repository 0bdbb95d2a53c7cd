// Export of plots or of the whole grid as PNG or SVG, always dark on white.

import { saveFile } from "../shared/files.js";
import { captionOfGrid, captionOfView, fileName, gridName } from "./caption.js";
import { PRINTED } from "./colours.js";
import { layOutFigure } from "./figure.js";
import { barOf } from "./legend.js";
import { paintOverThumbnail } from "./over_picture.js";
import { paintMarks, paintPlot } from "./plot.js";
import { byteSteps, onCanvas, rasterise } from "./raster.js";
import { headName, onPicture } from "./state.js";
import { groupOf, openGroup, pictureOf } from "./store.js";
import { withTexts } from "./png_text.js";
import { SvgContext } from "./svg.js";

const PRINT_SCALE = 3; // pixels of a PNG for every pixel of the layout
const THUMBNAIL = { size: 64, gap: 6, names: 30, top: 20 };

export const savePicture = (view, ending) => savePlots(asPrinted(view), ending);
export const saveGrid = (view, ending) => saveHeads(asPrinted(view), ending);

/** The view as it is drawn on paper: nothing is pointed at. */
const asPrinted = (view) => Object.assign(Object.create(view), { theme: { ...view.theme, ...PRINTED }, dark: false, cursor: null });

function savePlots(view, ending) {
  const { plots, parts, words } = view;
  const about = captionOfView(view);
  const across = plots.length > 1 && parts.plots.clientWidth > 1.5 * plots[0].layout.width;
  const blocks = plots.map((plot) => {
    const group = groupOf(view, plot.source.input, plot.source.group);
    return {
      ...plot.layout,
      title: words.text("file_title", { kind: group.label, name: plot.title }),
      names: [...sidesOf(view, group), ...(plot.heads ?? []).map(([layer, head], i) => [headName(view, { group: group.id, layer, head }), view.theme.heads[i]])],
      bar: barOf(view, plot),
      draw: (context) => {
        paintPlot(view, plot, context);
        paintMarks(view, plot, context);
      },
    };
  });
  write(layOutFigure(view, blocks, about, across), about, ending, fileName(view, ending));
  view.renderHover(); // what paints marks also fades what lies under them on the page
}

/** What queries and keys are, each in its colour. */
const sidesOf = ({ words, theme }, group) => [
  [words.text("queries", { label: group.queries_label }), theme.queries],
  [words.text("keys", { label: group.keys_label }), theme.keys],
];

function saveHeads(view, ending) {
  const group = openGroup(view);
  const about = captionOfGrid(view);
  const { size, gap, names, top } = THUMBNAIL;
  const across = Math.max(...group.layers.map((layer) => layer.heads));
  const block = {
    width: names + across * (size + gap),
    height: top + group.layers.length * (size + gap),
    title: about.title,
    names: sidesOf(view, group),
    bar: onPicture(view) ? null : barOf(view),
    draw: (context) => drawHeads(context, view, group),
  };
  write(layOutFigure(view, [block], about), about, ending, gridName(view, ending));
}

function drawHeads(context, view, group) {
  const { size, gap, names, top } = THUMBNAIL;
  const name = (text, x, y, align) => {
    Object.assign(context, { textAlign: align, textBaseline: "middle", font: `11px ${view.theme.font}`, fillStyle: view.theme.quiet });
    context.fillText(text, x, y);
  };
  const across = Math.max(...group.layers.map((layer) => layer.heads));
  for (let head = 0; head < across; head += 1) {
    name(view.words.text("head_short", { head: head + 1 }), names + head * (size + gap) + size / 2, top / 2, "center");
  }
  group.layers.forEach(({ number, heads }, layer) => {
    const y = top + layer * (size + gap);
    name(view.words.text("layer_short", { layer: number }), 0, y + size / 2, "left");
    for (let head = 0; head < heads; head += 1) {
      context.save();
      context.translate(names + head * (size + gap), y);
      drawHead(context, view, layer, head);
      context.restore();
    }
  });
}

/** One thumbnail; nothing where it is not here yet. */
function drawHead(context, view, layer, head) {
  const { size } = THUMBNAIL;
  if (onPicture(view)) {
    paintOverThumbnail(context, view, layer, head, size);
    return;
  }
  const picture = pictureOf(view, 0, view.state.group, layer, false);
  if (!picture) return;
  const paint = view.paints.weights;
  const pixels = size * PRINT_SCALE;
  context.imageSmoothingEnabled = false;
  context.drawImage(onCanvas(rasterise({ ...picture, values: picture.of(head) }, paint.palette, byteSteps(paint), pixels, pixels)), 0, 0, size, size);
}

function write(figure, about, ending, name) {
  const { width, height, draw } = figure;
  if (ending === "svg") {
    const context = new SvgContext();
    draw(context);
    saveFile(new Blob([context.document(width, height, about)], { type: "image/svg+xml" }), name);
    return;
  }
  const canvas = Object.assign(document.createElement("canvas"), { width: width * PRINT_SCALE, height: height * PRINT_SCALE });
  const context = canvas.getContext("2d");
  context.scale(PRINT_SCALE, PRINT_SCALE);
  draw(context);
  const texts = { Title: about.title, Description: about.lines.join("\n"), Source: about.link, Software: "Attention Atlas" };
  canvas.toBlob(async (blob) => saveFile(await withTexts(blob, texts), name), "image/png");
}
