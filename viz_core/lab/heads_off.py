"""A run repeated with heads switched off: next words, perplexity, change of the output."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from viz_core.hub.model import HubModel
from viz_core.hub.runs.run import HubRun
from viz_core.trace import HeadsOff, intervene, switched_off

_MAX_LABELS = 6


@dataclass(frozen=True)
class Change:
    """A word or a class, and its probability with all heads and without some."""

    label: str
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class Without:
    """Effect of switching heads off in the same pass over the same tokens."""

    # the likeliest words after a token, or classes, of both passes together; () where there are none
    changes: tuple[Change, ...] = ()
    # of the text, with all heads and without: exp of the mean of -log p over its words, each given those before it;
    # None where the model does not write
    perplexity: tuple[float, float] | None = None
    counted: int = 0  # the words it was taken over
    # 1 - cos of each token's last state in both passes, 0 to 2; None where the model writes or sorts
    distances: Float[np.ndarray, " tokens"] | None = None


def switchable(model: HubModel, run: HubRun) -> tuple[tuple[str, int], ...]:
    """The sites whose heads can be switched off, each with their number.

    () where the model's own code attends, or a picture is compared with a text.
    """
    if model.engine.holds_maps or "switches" not in model.engine.features:
        return ()
    return tuple((call.site, call.num_heads) for call in run.trace if "@" not in call.site)


@torch.inference_mode()
def without_heads(model: HubModel, run: HubRun, off: HeadsOff, position: int = -1, count: int = 8) -> Without:
    """Repeat a run's pass with these heads off and compare: of a model that writes, `count` words after a position."""
    with intervene(switched_off(off)):
        after = model.rerun(run)
    before, head = run.output, model.card.head
    if head not in ("labels", "words"):
        return Without(distances=(1 - F.cosine_similarity(before, after, dim=-1)).numpy())
    writes = head == "words"
    chances = [(each[position] if writes else each).softmax(dim=-1) for each in (before, after)]
    both = _likeliest(chances[0], chances[1], count if writes else _MAX_LABELS)
    names = {i: model.read([i])[0].label for i in both} if writes else model.class_names
    changes = tuple(Change(names.get(i, str(i)), *(float(p[i]) for p in chances)) for i in both)
    targets = _next_tokens(run) if writes else []
    if not len(targets):
        return Without(changes)
    return Without(changes, (perplexity(before, targets), perplexity(after, targets)), len(targets))


def _likeliest(before: Float[Tensor, " n"], after: Float[Tensor, " n"], count: int) -> list[int]:
    """The likeliest of both distributions, the largest first."""
    top = torch.cat([each.topk(min(count, len(each))).indices for each in (before, after)]).unique()
    return top[torch.maximum(before, after)[top].argsort(descending=True)][:count].tolist()


def _next_tokens(run: HubRun) -> list[int]:
    """The next token of each position with logits, as far as there is one."""
    if run.target_tokens:
        return [token.id for token in run.target_tokens][-len(run.output) :]
    return [token.id for token in run.tokens[len(run.tokens) - len(run.output) + 1 :]]


def perplexity(logits: Float[Tensor, "places words"], targets: list[int]) -> float:
    """exp of the mean of -log p over the words that came, one for each of the first rows of logits."""
    return float(F.cross_entropy(logits[: len(targets)], torch.tensor(targets)).double().exp())
