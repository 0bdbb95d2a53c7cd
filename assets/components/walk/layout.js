// Where everything is in the world. A token of an embedding takes a unit; a block stands in a frame, and the open one is
// drawn in it, so small that it is seen only from near.

const TALLEST = 16; // rows' heights of a matrix
const GAP = 2.2;
const LABEL = 3.4; // for the tokens beside rows
const FRAME = 17; // width of a block's frame
const BESIDE = 3; // between frames

/**
 * Boxes by id: {id, kind, x, y, width, height, unit, rows, columns, ...}, `unit` the size of what is one high in it.
 * Only `shown` rows of the open stack are there: a word that is not yet written has none.
 */
export function layOut(walk, head, shown) {
  const [open, number] = walk.block;
  const inner = layOutBlock(walk, head, shown);
  const unit = FRAME / inner.width;
  const high = Math.max(4.5, inner.height * unit) + 0.6;
  const boxes = new Map();
  let x = LABEL;
  walk.stacks.forEach((stack, s) => {
    const rows = s === open ? shown : stack.tokens.length;
    const tall = Math.min(rows, TALLEST);
    const middle = (stack.maps.length * (high + BESIDE) - BESIDE) / 2;
    const put = (name, width, more) => {
      const id = `${name}.${s}`;
      boxes.set(id, { id, name, kind: "vectors", x, y: middle - tall / 2, width, height: tall, unit: tall / rows, rows, stack: s, ...more });
      x += width + GAP;
    };
    put("embedding", 5, { array: stack.embedded, tokens: s, stage: "embedding" });
    if (stack.positions) put("positions", 5, { array: stack.positions, stage: "positions" });
    stack.maps.forEach((_, block) => {
      const y = block * (high + BESIDE);
      boxes.set(`block.${s}.${block}`, { id: `block.${s}.${block}`, kind: "frame", x, y, width: FRAME, height: high, unit: 1, stack: s, block });
    });
    x += FRAME + GAP + LABEL;
  });
  const last = walk.stacks.length - 1;
  const end = walk.stacks[last].maps.length - 1;
  const size = 9.6;
  const above = boxes.get(`block.${last}.${end}`).y + high / 2 - size / 2;
  boxes.set("logits", { id: "logits", name: "logits", kind: "choices", x: x - LABEL, y: above, width: 11, height: size, unit: 1, stage: "logits" });
  const frame = boxes.get(`block.${open}.${number}`);
  const down = frame.y + frame.height / 2 - (inner.height * unit) / 2;
  for (const box of inner.boxes) {
    const place = { x: frame.x + box.x * unit, y: down + box.y * unit, width: box.width * unit, height: box.height * unit };
    boxes.set(box.id, { ...box, ...place, unit: unit * (box.unit ?? 1), inside: true, stack: open });
  }
  const all = [...boxes.values()];
  const [top, bottom] = [Math.min(...all.map((box) => box.y)), Math.max(...all.map((box) => box.y + box.height))];
  return { boxes, whole: { x: -0.5, y: top - 2.2, width: x - LABEL + 12.5, height: bottom - top + 3 } };
}

/** The boxes of the open block, from (0, 0). */
function layOutBlock(walk, head, shown) {
  const [open] = walk.block;
  const boxes = [];
  let x = LABEL + 0.6;
  const put = (name, kind, width, rows, pitch, more) => {
    const id = more.attention === undefined ? name : `${name}.${more.attention}`;
    boxes.push({ id, name, kind, x, y: (-rows * pitch) / 2, width, height: rows * pitch, rows, unit: pitch, ...more });
    x += width + GAP;
  };
  const pitch = Math.min(1, TALLEST / shown);
  put("input", "vectors", 5, shown, pitch, { array: walk.input, tokens: open, stage: "input" });
  walk.attentions.forEach((call, a) => {
    const columns = call.crosses ? call.columns : shown;
    const unit = Math.min(1.25, TALLEST / Math.max(shown, columns));
    const small = 0.62 * unit;
    const keys = call.crosses ? 0 : open;
    const key = Math.floor((head * call.key_heads) / call.heads);
    const stage = (name) => ({ stage: name, attention: a, call });
    let y = -(small * (shown + 2 * columns) + 3.2) / 2;
    for (const [name, rows, h] of [["queries", shown, head], ["keys", columns, key], ["values", columns, key]]) {
      const words = name === "queries" ? open : keys;
      boxes.push({ id: `${name}.${a}`, name, kind: name, x, y, width: 4.4, height: small * rows, rows, unit: small, array: call[name], head: h, words, ...stage("projections") });
      y += small * rows + 1.6;
    }
    x += 4.4 + GAP + LABEL;
    const matrix = { columns, head, tokens: open, keys };
    put("scores", "matrix", unit * columns, shown, unit, { ...matrix, array: call.scores, signed: true, ...stage("scores") });
    x += LABEL - GAP / 2;
    put("weights", "matrix", unit * columns, shown, unit, { ...matrix, array: call.weights, ...stage("softmax") });
    put("outputs", "outputs", 4.4, shown, unit, { array: call.outputs, head, ...stage("sum") });
    put("joined", "vectors", 7, shown, unit, { array: call.joined, segments: call.heads, segment: head, ...stage("heads") });
    put("state", "vectors", 5, shown, unit, { array: call.state, ...stage("residual") });
  });
  put("neurons", "vectors", 9, shown, pitch, { array: walk.neurons, stage: "feed-forward" });
  put("output", "vectors", 5, shown, pitch, { array: walk.output, stage: "feed-forward" });
  const top = Math.min(...boxes.map((box) => box.y)) - 3.4;
  for (const box of boxes) box.y -= top;
  return { boxes, width: x - GAP + 0.6, height: Math.max(...boxes.map((box) => box.y + box.height)) + 1 };
}

/** Ids of the boxes that a step reads, and of those it fills. */
export function boxesOf({ stage, stack, attention: a }) {
  const before = a ? `state.${a - 1}` : "input";
  const [embedding, positions] = [`embedding.${stack}`, `positions.${stack}`];
  return {
    tokens: [[], [embedding]],
    embedding: [[], [embedding]],
    positions: [[embedding], [positions]],
    rotation: [[], [embedding]],
    projections: [[before], [`queries.${a}`, `keys.${a}`, `values.${a}`]],
    scores: [[`queries.${a}`, `keys.${a}`], [`scores.${a}`]],
    mask: [[], [`scores.${a}`]],
    softmax: [[`scores.${a}`], [`weights.${a}`]],
    sum: [[`weights.${a}`, `values.${a}`], [`outputs.${a}`]],
    heads: [[`outputs.${a}`], [`joined.${a}`]],
    residual: [[`joined.${a}`], [`state.${a}`]], // and what entered, from afar
    "feed-forward": [[`state.${a}`, "neurons"], ["output"]],
    logits: [[], ["logits"]],
    choice: [[], ["logits"]],
    again: [[], []],
  }[stage];
}

/** The rectangle of some boxes, with room for their labels. */
export function around(layout, ids) {
  const boxes = ids.map((id) => layout.boxes.get(id)).filter(Boolean);
  if (!boxes.length) return layout.whole;
  const size = Math.max(...boxes.map((box) => box.unit));
  const left = Math.min(...boxes.map((box) => box.x - size * (box.tokens === undefined ? 0.8 : LABEL)));
  const right = Math.max(...boxes.map((box) => box.x + box.width)) + 0.8 * size;
  const top = Math.min(...boxes.map((box) => box.y - size * (box.kind === "matrix" ? 3.4 : 2)));
  const bottom = Math.max(...boxes.map((box) => box.y + box.height)) + 0.7 * size;
  return { x: left, y: top, width: right - left, height: bottom - top, unit: size };
}

/** A row of a box, or a cell of a matrix, in the world. */
export function cellOf(box, row, column) {
  const height = box.height / box.rows;
  const y = box.y + row * height;
  if (column === undefined) return { x: box.x, y, width: box.width, height };
  const width = box.width / box.columns;
  return { x: box.x + column * width, y, width, height };
}
