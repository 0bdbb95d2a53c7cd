"""Why an encoder without positions cannot reverse: to it, all blanks are one."""

import torch

from viz_core.tasks import Plan, Shape, TaskRun


@torch.no_grad()
def blank_spread(positions: str, seed: int = 0) -> float:
    """The largest difference between the scores of two blanks of one row, in a fresh encoder that shall reverse it.

    Without positions X -> f(X) has f(PX) = P f(X) for any order P, so equal rows of X come out equal, whatever the
    weights: exactly 0, but for rounding.
    """
    shape = Shape(positions=positions, causal=False)
    run = TaskRun(Plan("reverse", shape, seed=seed))
    example, _ = run.probe()
    scores = run.model(run.model.reads(*example))[example.decided]
    return float((scores - scores[:1]).abs().max())
