"""A model of two layers with one head each, run on a repeated sequence with patterns given for its heads."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from viz_core.tasks import TASKS, TaskTransformer
from viz_core.tasks.film import TWO_HEADS
from viz_core.trace import Edit, intervene, off, pattern, record, uniform

PERIOD = 6  # letters that are repeated once
Pattern: TypeAlias = str | tuple[int, ...]
"""The key of each query, -1 for none; "off", "trained", "uniform", or a name that `pattern` takes."""
_TASK = TASKS[TWO_HEADS.task]


class Outcome(NamedTuple):
    """What the model predicts; counted are the letters of the repetition but its first, which nobody can know."""

    loss: float  # mean of -log p, in nats
    predicted: tuple[str, ...]
    right: int
    maps: Float[Tensor, "layers n n"]  # zeros where a head is switched off


def weights_of(keys: Sequence[int]) -> Float[Tensor, "n n"]:
    """Return weights 1 for the key of each query; a row of zeros for -1."""
    chosen = torch.tensor(keys)
    return F.one_hot(chosen.clamp(min=0), len(keys)) * (chosen >= 0).float()[:, None]


@torch.no_grad()
def run_patterns(model: TaskTransformer, letters: Sequence[str], patterns: Sequence[Pattern]) -> Outcome:
    """Run the model on a sequence, with a pattern for the head of each layer."""
    ids = torch.tensor([_TASK.ids(*letters)])
    sites = [f"decoder.{layer}.self" for layer in range(len(patterns))]
    edits = {site: _edit(what) for site, what in zip(sites, patterns, strict=True)}
    with intervene({site: edit for site, edit in edits.items() if edit is not None}), record() as trace:
        scores = model(ids[:, :-1])[0, PERIOD:]
    wanted, best = ids[0, PERIOD + 1 :], scores.argmax(dim=1)
    predicted, maps = (_TASK.tokens[token] for token in best.tolist()), [trace[site].weights()[0, 0] for site in sites]
    return Outcome(
        float(F.cross_entropy(scores, wanted)), tuple(predicted), int((best == wanted).sum()), torch.stack(maps)
    )


def _edit(what: Pattern) -> Edit | None:
    if isinstance(what, tuple):
        return pattern(0, weights_of(what))
    edits = {"trained": None, "off": off(0), "uniform": uniform(0)}
    return edits[what] if what in edits else pattern(0, what)
