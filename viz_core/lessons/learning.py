"""A reader's own run, the measures of recorded ones, and a model of two heads with patterns in their place."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from viz_core.maps.contributions import ContributionShares, longest
from viz_core.maps.measures import attention_entropy, diagonal_mass, induction_mass, key_mass, offset_mass
from viz_core.tasks import TASKS, Plan, Shape, TaskRun, TaskTransformer
from viz_core.tasks.film import BLANK, FILMS, TWO_HEADS, Film, accuracy_by_length
from viz_core.trace import Edit, intervene, off, pattern, record, uniform
from viz_core.trace.source import Direct

SHOTS = 40
"""Snapshots of a run, at most."""
_SHORT = 3  # letters


def plan_for(task: str, shape: Shape, steps: int, longest: int, seed: int) -> Plan:
    """A plan that learns what can be learned in so few updates: the rate falls as the width grows past 64.

    Tasks that have so few examples that they can be learned by heart are trained as the recorded run of them is.
    """
    rate = 5e-3 * min(1.0, 64 / shape.num_hiddens)
    every = max(5, steps // SHOTS)
    if TASKS[task].finite:
        return replace(FILMS["modular-addition"], shape=shape, steps=steps, every=every, seed=seed)
    shortest = min(_SHORT, longest)
    return Plan(task, shape, steps, shortest, longest, learning_rate=rate, every=every, seed=seed)


def right_by_length(run: TaskRun, lengths: Sequence[int]) -> list[tuple[int, float]]:
    """Length and accuracy of what a run has learned so far, at those of the lengths that its task has."""
    there = [length for length in lengths if run.task.shortest <= length <= run.task.longest]
    return list(zip(there, accuracy_by_length(run, there), strict=True))


HEAD_MEASURES = ("induction", "previous", "diagonal", "first", "entropy")


def head_measures(film: Film, since: int = 0) -> dict[str, Float[np.ndarray, "shots layers heads"]]:
    """Every measure of every head of the probe at every shot from one on; no induction where no token comes twice.

    Weights on the token that followed the same token before, on the token before, on itself and on the first token, 0
    to 1, and the entropy in bits, all as means over queries.
    """
    weights = shot_weights(film, slice(since, None))
    # What is blank is the same everywhere, and no place that was seen before.
    tokens = [token if token != BLANK else place for place, token in enumerate(film.read)]
    found = {
        "induction": induction_mass(weights, tokens) if len(set(tokens)) < len(tokens) else None,
        "previous": offset_mass(weights, -1),
        "diagonal": diagonal_mass(weights),
        "first": key_mass(weights, [0]),
        "entropy": attention_entropy(weights).mean(dim=-1),
    }
    return {name: measured.numpy() for name, measured in found.items() if measured is not None}


def shot_weights(film: Film, shots: int | slice) -> Float[Tensor, "*shots layers heads n n"]:
    """The maps of a shot, or of several, in float32; every row sums to 1 again."""
    weights = torch.from_numpy(film.maps[shots].astype(np.float32))
    return weights / weights.sum(dim=-1, keepdim=True)


def shares_at(film: Film, shot: int, in_lengths: bool = False) -> list[ContributionShares]:
    """What each key's share of what a head adds was at a shot, a source of maps for each layer.

    Args:
        in_lengths: lengths in place of shares, on one scale for all shots.
    """
    unit = longest([torch.from_numpy(film.lengths.astype(np.float32))]) if in_lengths else None
    lengths = torch.from_numpy(film.lengths[shot].astype(np.float32))
    layers = zip(shot_weights(film, shot)[:, None], lengths[:, None], strict=True)
    return [ContributionShares(Direct(weights), vectors, unit) for weights, vectors in layers]


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
