// Layout of a saved figure: titled plots with colour scales, and a caption.

import { textWidth, wrap } from "../shared/text.js";
import { shorten } from "./words.js";

const MARGIN = 16;
const HEAD = 46; // over a block: its name, and what queries and keys are
const BAR = { height: 10, width: 180, room: 42 };
const LINE = 15; // of the caption
const NARROWEST = 470;
const MOST_WRITTEN = 400; // signs of a line of the caption: the metadata holds all of it

/**
 * Where everything goes: {width, height, draw(context)}.
 *
 * Blocks are {width, height, title, names: [[text, colour]], bar, draw(context)}, drawn with the origin at their corner.
 */
export function layOutFigure({ theme }, blocks, { lines, link }, across = false) {
  let [x, y, width, bottom] = [MARGIN, MARGIN, NARROWEST, 0];
  const places = blocks.map((block) => {
    const place = { x, y: y + HEAD, block };
    const end = place.y + block.height + (block.bar ? BAR.room : 0);
    width = Math.max(width, x + block.width + MARGIN);
    bottom = Math.max(bottom, end);
    if (across) x += block.width + MARGIN;
    else y = end + MARGIN;
    return place;
  });
  const font = `11px ${theme.font}`;
  const caption = [...lines, link].filter(Boolean).flatMap((line) => wrap(line.slice(0, MOST_WRITTEN), width - 2 * MARGIN, font));
  const height = bottom + MARGIN + caption.length * LINE + MARGIN / 2;
  const draw = (context) => {
    context.fillStyle = theme.paper;
    context.fillRect(0, 0, Math.ceil(width), Math.ceil(height));
    for (const { x: left, y: top, block } of places) drawBlock(context, theme, block, left, top);
    caption.forEach((line, i) => write(context, theme, line, MARGIN, bottom + MARGIN + (i + 0.5) * LINE, 11, theme.quiet));
  };
  return { width: Math.ceil(width), height: Math.ceil(height), draw };
}

function drawBlock(context, theme, block, x, y) {
  write(context, theme, shorten(block.title, block.width, (text) => textWidth(text, `bold 15px ${theme.font}`)), x, y - 34, 15, theme.text, "bold ");
  block.names.reduce((at, [text, colour]) => write(context, theme, text, at, y - 14, 12, colour), x);
  context.save();
  context.translate(x, y);
  block.draw(context);
  context.restore();
  if (block.bar) drawBar(context, theme, block.bar, x, y + block.height + 8);
}

/** The scale of the colours, each named weight where its colour is. */
function drawBar(context, theme, { long, css, ticks }, x, y) {
  const steps = 60;
  for (let i = 0; i < steps; i += 1) {
    context.fillStyle = css(i / (steps - 1));
    context.fillRect(x + (i * BAR.width) / steps, y, BAR.width / steps + (i < steps - 1 ? 0.5 : 0), BAR.height);
  }
  context.strokeStyle = theme.quiet;
  context.lineWidth = 0.5;
  context.strokeRect(x, y, BAR.width, BAR.height);
  for (const { at, text } of ticks) write(context, theme, text, x + at * BAR.width, y + BAR.height + 9, 10, theme.quiet, "", "center");
  write(context, theme, long, x + BAR.width + 14, y + BAR.height / 2, 11, theme.quiet);
}

/** Write a line; where the next may begin. */
function write(context, theme, text, x, y, size, colour, bold = "", align = "left") {
  context.textAlign = align;
  context.textBaseline = "middle";
  context.direction = "ltr";
  context.font = `${bold}${size}px ${theme.font}`;
  context.fillStyle = colour;
  context.fillText(text, x, y);
  return x + textWidth(text, context.font) + 18;
}
