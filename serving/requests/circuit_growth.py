"""The circuit of a run that learns to repeat, from its first update to its last; the run is trained again for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from serving.requests.two_sentences import DRAWS, find_circuit
from viz_core.circuits import Edge, circuits_alone
from viz_core.circuits.path import Head
from viz_core.tasks import Plan, TaskRun, TaskTransformer

NUM_HEADS = 4
_ROWS, _PERIOD = 16, 8  # rows of different letters that are repeated
_QUERY, _SWAPPED = 3, 6  # places in a row of the letter that is read last, and of the one it changes places with
_EVERY = 50  # updates
_LEAST = 0.5  # logits: a smaller change is not worth a share


@dataclass(frozen=True, eq=False)
class Growth:
    """The circuit at the end of a run, and what it does alone after each of some updates.

    Attributes:
        changes: difference of the logits on the first rows minus that on the second.
        alone: share of the change that the circuit keeps; NaN where the change is small.
        random: the same of random circuits of this size.
        edges: at the end, each with the share it recovers.
        rows: the first of the first rows, and of the second.
    """

    steps: tuple[int, ...]
    changes: Float[np.ndarray, " steps"]
    alone: Float[np.ndarray, " steps"]
    random: Float[np.ndarray, "steps circuits"]
    heads: tuple[Head, ...]
    edges: tuple[tuple[Edge, float], ...]
    rows: tuple[str, str]


def circuit_growth(plan: Plan) -> Growth:
    """Train a model; return how its circuit grew."""
    run = TaskRun(plan)
    clean, corrupted, metric = swapped_rows(len(run.task.tokens))
    weights = {0: _copy(run.model)}
    for point in run.advance():
        if point.step % _EVERY == 0 or run.finished:
            weights[point.step] = _copy(run.model)
    model = run.model.eval()
    end = find_circuit(model, clean, corrupted, metric, NUM_HEADS)
    heads = [(f"decoder.{i}.self", j) for i in range(len(model.layers)) for j in range(run.plan.shape.num_heads)]
    generator = torch.Generator().manual_seed(0)
    draws = [torch.randperm(len(heads), generator=generator)[:NUM_HEADS].tolist() for _ in range(DRAWS)]
    circuits = [end.heads, heads, [], *([heads[i] for i in draw] for draw in draws)]
    changes, shares = [], []
    for state in weights.values():
        model.load_state_dict(state)
        found = circuits_alone(model, clean, corrupted, metric, circuits).double()
        first, second = found[1], _difference(model, corrupted, metric)
        changes.append(float(first - second))
        small = abs(changes[-1]) < _LEAST
        shares.append(torch.full_like(found, torch.nan) if small else (found - second) / (first - second))
    alone = torch.stack(shares).numpy()
    edges = tuple((edge, (edge.value - float(second)) / changes[-1]) for edge in end.edges)
    rows = tuple("".join(run.task.tokens[i] for i in each["tokens"][0]) for each in (clean, corrupted))
    return Growth(tuple(weights), np.array(changes), alone[:, 0], alone[:, 3:], end.heads, edges, (rows[0], rows[1]))


def swapped_rows(
    vocabulary: int,
) -> tuple[dict[str, Tensor], dict[str, Tensor], Callable[[Tensor], Tensor]]:
    """Return rows that begin to repeat, the same with two letters of the first part exchanged, and a metric.

    The last letter read is followed by another one in each. The metric is the mean difference of the logits of the two.
    """
    generator = torch.Generator().manual_seed(0)
    block = torch.stack([torch.randperm(vocabulary, generator=generator)[:_PERIOD] for _ in range(_ROWS)])
    clean = torch.cat([block, block[:, : _QUERY + 1]], dim=1)
    corrupted = clean.clone()
    corrupted[:, [_QUERY, _SWAPPED]] = clean[:, [_SWAPPED, _QUERY]]
    answers, others, rows = block[:, _QUERY + 1], block[:, _SWAPPED + 1], torch.arange(_ROWS)

    def metric(logits: Tensor) -> Tensor:
        return (logits[rows, -1, answers] - logits[rows, -1, others]).mean()

    return {"tokens": clean}, {"tokens": corrupted}, metric


@torch.no_grad()
def _difference(model: TaskTransformer, inputs: dict[str, Tensor], metric: Callable[[Tensor], Tensor]) -> Tensor:
    return metric(model(**inputs)).double()


def _copy(model: TaskTransformer) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}
