// Where a reader is on the walk, as the text that the URL holds: "softmax.0.1.0.0~2~3~1~row".

export const ZOOMS = ["model", "layer", "stage", "row", "cell"];

export function writePlace({ step, head, row, cell, zoom }) {
  const { stage, stack, block, attention, round } = step;
  return [[stage, stack, block, attention, round].join("."), head, row, cell ? cell.column : "", zoom].join("~");
}

/** The place that a text describes; what is malformed is left out. */
export function readPlace(text) {
  const [step, head, row, column, zoom] = (text ?? "").split("~");
  const [stage, ...numbers] = (step ?? "").split(".");
  const [stack, block, attention, round] = numbers.map((each) => (/^\d{1,3}$/.test(each) ? Number(each) : 0));
  const number = (each) => (/^\d{1,3}$/.test(each ?? "") ? Number(each) : null);
  if (!stage || numbers.length !== 4) return null;
  return {
    step: { stage, stack, block, attention, round },
    head: number(head) ?? 0,
    row: number(row),
    column: number(column),
    zoom: ZOOMS.includes(zoom) ? zoom : "stage",
  };
}
