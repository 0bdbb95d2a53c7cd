"""Path patching: what one head hands to another along the residual stream, taken from another run."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.circuits.sweep import logits_of, recorded_runs
from viz_core.trace import Edit, Trace, intervene, patch, patch_state, record
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
