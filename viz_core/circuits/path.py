"""Circuits: what one head hands to another along the residual stream, and what a few heads do alone."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.circuits.sweep import CELLS, HeadsOfRun, logits_of, metrics_of_copies, recorded_runs
from viz_core.runtime.hooks import may_end
from viz_core.trace import Edit, Trace, head_outputs, intervene, patch, patch_state, record
from viz_core.trace.source import Projected
from viz_core.trace.weight_edits import Places

Head: TypeAlias = tuple[str, int]
"""A site and the number of a head: ("decoder.0.self", 3)."""

_INPUTS = ("queries", "keys", "values")
_PARTS = ("attention", "cross", "mlp", "mixer", "sublayers")


@torch.no_grad()
def path_patch(
    model: nn.Module,
    clean: Mapping[str, Any],
    corrupted: Mapping[str, Any],
    metric: Callable[[Tensor], Tensor],
    sender: Head,
    receiver: Head | None = None,
    to: str = "queries",
    *,
    queries: Places = None,
    through_mlp: bool = False,
) -> Float[Tensor, ""]:
    """Return the metric of the corrupted run with one path, from a head to another, taken from the clean run.

    The receiver's queries, keys or values are what they would be if the sender had written what it wrote in the clean
    run, and all heads and feed-forward nets between the two what they wrote in the corrupted run. What follows the
    receiver is computed (Wang 2022, section 3.1; Goldowsky-Dill 2023, "Localizing Model Behavior with Path Patching").

    Args:
        model, clean, corrupted, metric: as in `patch_sweep`.
        sender: a site and a head: ("decoder.0.self", 3).
        receiver: the same, of a later call; None is the output layer: the sender's direct effect on the logits.
        to: "queries", "keys" or "values" of the receiver; of grouped queries, for this head alone.
        queries: positions at which the sender writes, as in `patch`; None is all.
        through_mlp: whether feed-forward nets between the two compute what follows for them, as in Wang 2022.

    Raises:
        KeyError: if a site was not recorded.
        ValueError: in training mode; if the runs differ in size or padding, there is no such head, the receiver is no
            softmax attention after the sender, or the parts of a layer cannot be told apart.
    """
    if to not in _INPUTS:
        raise ValueError(f"to: expected 'queries', 'keys' or 'values', got {to!r}")
    run, other, _ = recorded_runs(model, clean, corrupted)
    edits: dict[str, Edit] = {**_frozen(other, sender[0], through_mlp)}
    edits[sender[0]] = patch(sender[1], run[sender[0]], "output", queries)
    with intervene(edits), record(values=True) as changed:
        logits = logits_of(model, corrupted)
    if receiver is None:
        return metric(logits).float().cpu()
    site, head = receiver
    call, found = other[site], changed[site].source
    if not other.sites.index(site) > other.sites.index(sender[0]):
        raise ValueError(f"receiver: expected a call after {sender[0]!r}, got {site!r}")
    if not isinstance(call.source, Projected) or call.source.signed:
        raise ValueError(f"receiver: expected softmax attention of queries and keys, got {site!r}")
    call = replace(call, source=replace(call.source, **{to: getattr(found, to)}))
    with intervene({site: patch(head, call, "output")}):
        return metric(logits_of(model, corrupted)).float().cpu()


def _frozen(run: Trace, site: str, through_mlp: bool) -> dict[str, Edit]:
    """Return edits by which all parts of all layers write what they did in a run, but the attention of a site."""
    run[site]  # KeyError if there is none
    layers = {name.removesuffix(".residual"): set[str]() for name in run.states if name.endswith(".residual")}
    for name in run.states:
        layer, _, part = name.rpartition(".")
        if part in _PARTS:
            layers[layer].add(part)
    own = "cross" if site.endswith("cross") else "attention"
    for layer, parts in layers.items():
        if not parts or (through_mlp and "sublayers" in parts):
            raise ValueError(f"{layer}: expected a layer whose parts are added to the stream one by one")
        if site.startswith(f"{layer}."):
            beside = [call.site for call in run if call.site.startswith(f"{layer}.") and call.kind == run[site].kind]
            if len(beside) > 1:
                raise ValueError(f"{layer}: expected one attention of a kind, got {', '.join(beside)}")
            parts -= {own} if own in parts else {"mixer", "sublayers"}
        parts -= {"mlp"} if through_mlp else set()
    return {
        name: patch_state(run.states[name])
        for name in (f"{layer}.{part}" for layer, parts in layers.items() for part in parts)
    }


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
