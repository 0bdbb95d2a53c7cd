// The world on a canvas: boxes as far as the walk has come, the connections of the row in hand, tokens, titles and choices.

import { luminance, rgbOf, shorten, sizeCanvas, typeScale } from "../shared/canvas.js";
import { allowedOf, boxesOf, cellOf, coloursOf, drawLinks, numbersOf, pictureOf, projection, thumbnail } from "./layout.js";

/** Write a text where all of it is in view; a part of a word is worse than none. */
function write({ context }, view, text, x, y) {
  const { actualBoundingBoxLeft: left, actualBoundingBoxRight: right, actualBoundingBoxAscent: up, actualBoundingBoxDescent: down } =
    context.measureText(text);
  if (x - left < 0 || x + right > view.width || y - up < 0 || y + down > view.height) return;
  context.fillText(text, x, y);
}

function drawChoices(pen, view, rect, share) {
  const { context } = pen;
  const { choices } = view.walk;
  const round = Math.min(view.step.round, choices.length - 1);
  const now = choices[round];
  const old = now.before;
  const high = rect.height / now.words.length;
  const size = Math.min(13 * pen.type, high * 0.55);
  if (size < 7) {
    context.strokeStyle = pen.ink;
    context.strokeRect(rect.x, rect.y, rect.width, rect.height);
    return;
  }
  const left = rect.x + rect.width * 0.36;
  const room = rect.width * 0.4;
  const chosen = view.step.stage === "choice" || view.step.stage === "again" ? now.chosen : null;
  now.words.forEach((word, i) => {
    const y = rect.y + i * high;
    const was = old ? old.probabilities[i] : null;
    context.font = `${word === chosen ? 700 : 400} ${size}px ${pen.font}`;
    context.textBaseline = "middle";
    context.textAlign = "right";
    context.fillStyle = word === chosen ? pen.accent : pen.ink;
    write(pen, view, word, left - 6, y + high / 2);
    context.fillStyle = word === chosen ? pen.accent : "#7f9d98";
    const tall = was === null ? 0.62 : 0.34;
    context.fillRect(left, y + high * 0.19, Math.max(1, room * now.probabilities[i] * share), high * tall);
    if (was !== null) {
      context.globalAlpha = 0.4;
      context.fillStyle = pen.ink;
      context.fillRect(left, y + high * 0.56, Math.max(1, room * was * share), high * 0.25);
      context.globalAlpha = 1;
    }
    context.fillStyle = pen.ink;
    context.textAlign = "left";
    const text = view.percent(now.probabilities[i]) + (was === null ? "" : ` (${view.percent(was)})`);
    write(pen, view, text, left + room * now.probabilities[i] * share + 5, y + high / 2);
  });
}

const FAINT = 0.13;
const FAR = 260; // pixels of a frame whose inside is not seen
const SMALLEST = 8; // pixels of a text that can be read

export function drawWorld(view) {
  const { canvas, root } = view.parts;
  const style = getComputedStyle(root);
  const context = sizeCanvas(canvas, view.width, view.height);
  const at = projection(view.camera, view.width, view.height);
  const ink = style.color;
  const dark = luminance(rgbOf(style.getPropertyValue("--st-background-color") || "#fff")) < 0.4;
  const pen = { context, at, ink, dark, font: style.fontFamily, accent: style.getPropertyValue("--st-primary-color"), colours: coloursOf(dark), type: typeScale() };
  context.imageSmoothingEnabled = false;
  const lit = new Set(boxesOf(view.step).flat());
  pen.within = [...lit].some((id) => view.layout.boxes.get(id)?.inside);
  const frame = view.layout.boxes.get(`block.${view.walk.block.join(".")}`);
  const close = Math.min(1, Math.max(0, (frame.width * at.scale - FAR) / FAR)); // how well the inside of a frame is seen
  for (const box of view.layout.boxes.values()) {
    pen.fade = box.inside ? close : box === frame ? 1 - close : box.kind === "frame" ? 1 - 0.7 * close : 1;
    drawBox(pen, view, box, lit.has(box.id));
  }
  pen.fade = 1;
  if (close > 0.5) drawLinks(pen, view);
}

/** How much of a box there is: 0 before its step, 1 after it, the share of it during it. */
function shareOf(view, box) {
  const { step, steps, index, progress } = view;
  if (step.round) return 1;
  const ofBlock = (each) => each.stack === box.stack && (box.block === undefined ? each.block === view.walk.block[1] : each.block === box.block);
  if (box.kind === "frame" || box.stage === "input") { // there once its block begins, or ends
    const own = steps.map((each, i) => (ofBlock(each) && each.stage === (box.stage ? "projections" : "feed-forward") && !each.round ? i : -1)).filter((i) => i >= 0);
    return index >= own[0] ? 1 : 0;
  }
  const start = steps.findIndex((each) => !each.round && each.stage === box.stage && (box.stage === "logits" || each.stack === box.stack)
    && (!box.inside || each.block === view.walk.block[1]) && (box.attention === undefined || each.attention === box.attention));
  if (index < start) return 0;
  return index > start ? 1 : progress;
}

function drawBox(pen, view, box, lit) {
  const { context, at } = pen;
  const share = shareOf(view, box);
  const rect = { x: at.x(box.x), y: at.y(box.y), width: box.width * at.scale, height: box.height * at.scale };
  if (rect.x > view.width || rect.y > view.height || rect.x + rect.width < 0 || rect.y + rect.height < 0) return;
  if (!pen.fade && box.kind !== "frame") return;
  context.globalAlpha = pen.fade * (share ? 1 : box.kind === "frame" ? 0.45 : FAINT);
  if (box.kind === "frame") drawFrame(pen, view, box, rect);
  else if (box.kind === "choices") drawChoices(pen, view, rect, share);
  else {
    drawNumbers(pen, view, box, rect, share);
    if (box.tokens !== undefined) drawTokens(pen, view, box, rect);
  }
  context.globalAlpha = box.kind === "frame" ? (share ? 1 : 0.7) : pen.fade * (share ? 1 : 0.4);
  drawTitle(pen, view, box, rect, lit);
  context.globalAlpha = 1;
}

/** A map of weights is a matrix too. */
const colourOf = ({ colours, ink }, { kind, signed }) => colours[kind === "matrix" && !signed ? "weights" : kind] ?? ink;

function drawNumbers(pen, view, box, rect, share) {
  const { context, at } = pen;
  const { rows } = box;
  const done = view.step.round ? rows : share * rows;
  const whole = Math.floor(done);
  const high = rect.height / box.rows;
  const picture = pictureOf(view.walk, box);
  const line = (from, count, alpha) => {
    if (count <= 0) return;
    context.globalAlpha = alpha * pen.fade;
    context.drawImage(picture, 0, from, box.columns ?? picture.width, count, rect.x, rect.y + from * high, rect.width, count * high);
  };
  line(0, whole, 1);
  if (whole < rows) line(whole, 1, done - whole);
  context.globalAlpha = pen.fade * (share ? 1 : FAINT);
  if (box.kind === "matrix") drawCells(pen, view, box, rect, whole);
  else if (high > 5) drawGaps(pen, view, rect, box.rows, high);
  context.lineWidth = 1.5;
  const colour = colourOf(pen, box);
  context.strokeStyle = colour;
  context.globalAlpha *= colour === pen.ink ? 0.5 : 1;
  if (high <= 5 || box.kind === "matrix") context.strokeRect(rect.x, rect.y, rect.width, rect.height);
  else for (let row = 0; row < rows; row += 1) context.strokeRect(rect.x, rect.y + row * high + 1, rect.width, high - 3);
  context.globalAlpha = pen.fade;
  if (box.segments > 1 && share) {
    const wide = rect.width / box.segments;
    context.strokeStyle = pen.colours.outputs;
    context.strokeRect(rect.x + box.segment * wide, rect.y, wide, rect.height);
  }
  const row = view.rowIn(box);
  if (row !== null && share && row < rows) {
    context.lineWidth = 2;
    context.strokeStyle = pen.accent;
    const cell = cellOf(box, row);
    context.strokeRect(at.x(cell.x) - 1, at.y(cell.y) - 1, cell.width * at.scale + 2, cell.height * at.scale + 2);
  }
}

function drawGaps(pen, view, rect, rows, high) {
  pen.context.fillStyle = view.paper;
  for (let row = 0; row < rows; row += 1) pen.context.fillRect(rect.x - 1, rect.y + (row + 1) * high - 2, rect.width + 2, 2);
}

function drawCells(pen, view, box, rect, done) {
  const { context, at } = pen;
  const { values, columns: stride } = numbersOf(view.walk, box);
  const allowed = allowedOf(view.walk, box);
  const wide = rect.width / box.columns;
  const high = rect.height / box.rows;
  const hidden = !box.signed || view.masked;
  const size = Math.min(13 * pen.type, wide / 3.1, high / 1.6);
  context.font = `${size}px ${pen.font}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (let row = 0; row < done; row += 1) {
    for (let column = 0; column < box.columns; column += 1) {
      const i = row * stride + column;
      const x = rect.x + column * wide;
      const y = rect.y + row * high;
      if (hidden && !allowed[i]) {
        context.fillStyle = pen.dark ? "#3a3a3a" : "#efece6";
        context.fillRect(x, y, wide, high);
      } else if (size >= SMALLEST) {
        const pale = box.signed ? Math.abs(values[i]) / view.limitOf(box) < 0.55 : values[i] > 0.55;
        context.fillStyle = pale ? "#111" : "#fff";
        write(pen, view, view.format(values[i], 2), x + wide / 2, y + high / 2);
      }
    }
  }
  const cell = view.cell;
  if (cell && view.rowIn(box) !== null && cell.column < box.columns) {
    const place = cellOf(box, cell.row, cell.column);
    context.lineWidth = 3;
    context.strokeStyle = pen.accent;
    context.strokeRect(at.x(place.x), at.y(place.y), place.width * at.scale, place.height * at.scale);
  }
}

function drawTokens(pen, view, box, rect) {
  const { context } = pen;
  const measure = (text) => context.measureText(text).width;
  const high = rect.height / box.rows;
  const { picture } = view.walk;
  const tokens = view.walk.stacks[box.tokens].tokens;
  const size = Math.min(14 * pen.type, high * 0.8);
  context.font = `${size}px ${pen.font}`;
  context.textBaseline = "middle";
  const unit = pen.at.scale * box.unit;
  if (picture && view.image?.complete) {
    drawPatches(pen, view, box, rect);
  } else if (size >= SMALLEST) {
    context.textAlign = "right";
    for (let row = 0; row < box.rows; row += 1) {
      const chosen = view.rowIn(box) === row;
      context.fillStyle = chosen ? pen.accent : box.kind === "matrix" ? pen.colours.queries : pen.ink;
      context.font = `${chosen ? 600 : 400} ${size}px ${pen.font}`;
      write(pen, view, shorten(tokens[row], 3 * unit, measure), rect.x - 6, rect.y + (row + 0.5) * high);
    }
  }
  if (box.kind !== "matrix" || picture) return;
  const wide = rect.width / box.columns;
  const across = Math.min(13 * pen.type, wide * 0.7);
  if (across < SMALLEST) return;
  context.fillStyle = pen.colours.keys;
  context.textAlign = "left";
  const keys = view.walk.stacks[box.keys].tokens;
  for (let column = 0; column < box.columns; column += 1) {
    const [x, y] = [rect.x + column * wide, rect.y - 6];
    if (x < 0 || x + 3 * unit > view.width || y < 2.5 * unit || y > view.height) continue;
    context.save();
    context.font = `${view.cell?.column === column ? 600 : 400} ${across}px ${pen.font}`;
    context.translate(rect.x + (column + 0.4) * wide, rect.y - 6);
    context.rotate(-Math.PI / 5);
    context.fillText(shorten(keys[column], 3 * unit, measure), 0, 0);
    context.restore();
  }
}

function drawPatches(pen, view, box, rect) {
  const [rows, columns] = view.walk.picture.grid;
  const high = rect.height / box.rows;
  const side = Math.min(high * 0.9, 40);
  if (side < 3) return;
  const wide = view.image.naturalWidth / columns;
  const tall = view.image.naturalHeight / rows;
  for (let token = 1; token < box.rows; token += 1) {
    const [row, column] = [Math.floor((token - 1) / columns), (token - 1) % columns];
    pen.context.drawImage(view.image, column * wide, row * tall, wide, tall, rect.x - side - 5, rect.y + token * high, side, side);
  }
}

function drawTitle(pen, view, box, rect, lit) {
  const { context, at } = pen;
  const title = view.titleOf(box);
  const unit = at.scale * box.unit * (box.inside ? 1 / Math.min(1, box.unit / view.layout.boxes.get("input").unit) : 1);
  const size = Math.min(13 * pen.type, unit * 0.85);
  if (size < SMALLEST || !title) return;
  context.font = `${lit ? 700 : 600} ${size}px ${pen.font}`;
  context.fillStyle = colourOf(pen, box);
  context.textAlign = "center";
  context.textBaseline = "bottom";
  const above = box.kind === "matrix" && !view.walk.picture ? 1.7 * unit : 5;
  let [x, y] = [rect.x + rect.width / 2, rect.y - above];
  if (box.kind === "frame" && !pen.within) { // a layer at the edge has its name where part of it is in view
    const room = context.measureText(title).width / 2 + 5;
    x = Math.max(room, Math.min(view.width - room, (Math.max(0, rect.x) + Math.min(view.width, rect.x + rect.width)) / 2));
    if (y < size) y = rect.y + rect.height - 8;
  }
  write(pen, view, title, x, y);
}

/** A block from afar: the weights of all its heads. */
function drawFrame(pen, view, box, rect) {
  const { context } = pen;
  const calls = view.walk.stacks[box.stack].maps[box.block];
  const each = calls.flatMap((array) => Array.from({ length: array.shape[0] }, (_, head) => [array, head]));
  const rows = Math.max(1, Math.round(Math.sqrt((each.length * rect.height) / rect.width)));
  const across = Math.ceil(each.length / rows);
  const side = Math.min(rect.width / across, rect.height / rows);
  const [left, top] = [rect.x + (rect.width - side * across) / 2, rect.y + (rect.height - side * rows) / 2];
  const alpha = context.globalAlpha;
  const { tokens } = view.walk.stacks[box.stack];
  const there = view.layout.boxes.get(`embedding.${box.stack}`).rows / tokens.length;
  each.forEach(([array, head], i) => {
    const [x, y] = [left + (i % across) * side, top + Math.floor(i / across) * side];
    const picture = thumbnail(view.walk, array, head);
    const part = Math.max(1, Math.round(picture.height * there)); // without what is not yet written
    const wide = calls.length > 1 && array === calls[1] ? picture.width : Math.max(1, Math.round(picture.width * there));
    context.drawImage(picture, 0, 0, wide, part, x + side * 0.07, y + side * 0.07, side * 0.86, side * 0.86);
  });
  context.lineWidth = 1.5;
  context.strokeStyle = pen.ink;
  context.globalAlpha = 0.35 * Math.max(alpha, 0.4);
  context.strokeRect(rect.x, rect.y, rect.width, rect.height);
  context.globalAlpha = 1;
}
