"""A circuit of a few heads: the paths between them, and how much it does alone."""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.circuits.path import Head, path_patch
from viz_core.circuits.sweep import CELLS, HeadsOfRun, metrics_of_copies, recorded_runs
from viz_core.runtime.interruption import may_end
from viz_core.trace import head_outputs, intervene


class Edge(NamedTuple):
    """A path from a head to the queries, keys or values of a later one, or to the logits, and its effect."""

    sender: Head
    receiver: Head | None  # None: the logits
    to: str
    value: float  # the metric of the corrupted run with this path alone from the clean one


def circuit_edges(
    model: nn.Module,
    clean: Mapping[str, Any],
    corrupted: Mapping[str, Any],
    metric: Callable[[Tensor], Tensor],
    heads: Collection[Head],
) -> tuple[Edge, ...]:
    """Return every path between these heads, and from each to the logits, through feed-forward nets (`path_patch`).

    Arguments and errors are those of `path_patch`; heads are sites and numbers.
    """
    sites, edges = recorded_runs(model, clean, corrupted)[0].sites, []
    for sender in heads:
        later = [head for head in heads if sites.index(head[0]) > sites.index(sender[0])]
        inputs: list[tuple[Head | None, str]] = [(None, "queries")]
        for head, to in product(later, ("queries", "keys", "values")):
            if not head[0].endswith("cross") or sender[0].startswith("encoder") == (to != "queries"):
                inputs.append((head, to))
        for receiver, to in inputs:
            may_end()
            value = path_patch(model, clean, corrupted, metric, sender, receiver, to, through_mlp=True)
            edges.append(Edge(sender, receiver, "logits" if receiver is None else to, float(value)))
    return tuple(edges)


@torch.no_grad()
def circuits_alone(
    model: nn.Module,
    clean: Mapping[str, Any],
    corrupted: Mapping[str, Any],
    metric: Callable[[Tensor], Tensor],
    circuits: Sequence[Collection[Head]],
) -> Float[Tensor, " circuits"]:
    """Return the metric of the clean run if all heads outside a circuit write what they wrote in the corrupted run.

    Feed-forward nets compute what follows for them (Wang 2022, section 4; resampled as in Chan 2022).

    Raises:
        ValueError: as `patch_sweep`.
    """
    _, other, logits = recorded_runs(model, clean, corrupted)
    outputs, found = {call.site: head_outputs(call) for call in other}, list[Tensor]()
    for start in range(0, len(circuits), CELLS):
        may_end()
        some = circuits[start : start + CELLS]
        edits = {
            site: HeadsOfRun(
                None, each, torch.tensor([[(site, i) not in c for i in range(each.shape[1])] for c in some])
            )
            for site, each in outputs.items()
        }
        with intervene(edits):
            found += metrics_of_copies(model, clean, metric, len(logits), len(some))
    return torch.stack(found)
