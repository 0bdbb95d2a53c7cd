// The steps of a walk in order: what is computed at each, and in which block.

/** All steps: {stage, stack, block, attention, round}; `round` counts the words written before. */
export function stepsOf(walk) {
  const steps = [];
  const add = (stage, place = {}) => steps.push({ stage, stack: 0, block: 0, attention: 0, round: 0, ...place });
  walk.stacks.forEach(({ positions, maps }, stack) => {
    add("tokens", { stack });
    add("embedding", { stack });
    add(positions ? "positions" : "rotation", { stack });
    maps.forEach((calls, block) => {
      calls.forEach((_, attention) => {
        const place = { stack, block, attention };
        const masked = walk.stacks.length === 1 ? walk.kind === "writer" : stack === 1 && attention === 0;
        for (const stage of ["projections", "scores", ...(masked ? ["mask"] : []), "softmax", "sum", "heads", "residual"]) {
          add(stage, place);
        }
      });
      add("feed-forward", { stack, block });
    });
  });
  if (walk.small) { // one block has come with it, and no more will
    const [stack, block] = walk.block;
    const own = steps.filter((step) => step.stack === stack && step.block === block);
    return [...own, ...["logits", "choice"].map((stage) => ({ stage, stack, block, attention: 0, round: 0 }))];
  }
  const stack = walk.stacks.length - 1;
  const block = walk.stacks[stack].maps.length - 1;
  walk.choices.forEach((_, round) => {
    if (round) add("again", { stack, block, round });
    add("logits", { stack, block, round });
    add("choice", { stack, block, round });
  });
  return steps;
}

/** How long a step takes to play, in milliseconds at speed 1: later blocks do what the first did, and pass faster. */
export function duration({ stage, block, round }) {
  const full = { tokens: 1400, "feed-forward": 2200, scores: 3600, softmax: 3200, sum: 3200, again: 2600 }[stage] ?? 2400;
  return block > 0 && round === 0 && !["logits", "choice"].includes(stage) ? full / 5 : full;
}

/** The step of a stage in a block, or the closest there is. */
export function findStep(steps, wanted) {
  const same = (step, names) => names.every((name) => step[name] === wanted[name]);
  for (const names of [["stage", "stack", "block", "attention", "round"], ["stage", "stack", "block"], ["stage", "stack"], ["stage"]]) {
    const found = steps.findIndex((step) => same(step, names));
    if (found >= 0) return found;
  }
  return 0;
}

/** The stages that have a button: those of the block that is open, in order, each once. */
export function chipsOf(steps, { stack, block, attention }) {
  const last = Math.max(...steps.map((step) => step.stack));
  const of = (step) => {
    if (["tokens", "embedding", "positions", "rotation"].includes(step.stage)) return step.stack === stack;
    if (["logits", "choice"].includes(step.stage)) return step.round === 0 && step.stack === last;
    return step.round === 0 && step.stack === stack && step.block === block && (step.stage === "feed-forward" || step.attention === attention);
  };
  return steps.map((step, i) => [step, i]).filter(([step]) => of(step));
}
