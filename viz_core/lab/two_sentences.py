"""Sweeps and patches between the runs of two sentences, in the form that a runner calls."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.circuits import Edge, circuit_edges, circuits_alone, patch_sweep
from viz_core.circuits.path import Head
from viz_core.circuits.sweep import logits_of, recorded_runs
from viz_core.hub import HubError, HubModel
from viz_core.hub.runs.token_text import Token
from viz_core.lab.sentence_pair import TwoSentences, plain_text, sentence_pair
from viz_core.trace import Edit, intervene, no_recording, patch, patch_state

DRAWS = 100
"""Random circuits."""
MAX_HEADS = 8
"""Heads of a circuit, at most: there is a path for each pair of them."""
HEADS = {"heads": "self", "cross-heads": "cross"}
"""The sweeps over heads, and the kind of their attention."""
_LISTED = 4  # predictions of each run
_LEAST_CHANGE = 1e-3  # logits


@dataclass(frozen=True, eq=False)
class Comparison:
    """What two runs have in common, and what each predicts."""

    # of each stack that reads them: pairs, of the first and the second sentence
    tokens: dict[str, tuple[tuple[str, str], ...]]
    answers: tuple[str, str]  # the two words that are compared
    # clean, corrupted: the difference of their logits, first minus second, after each sentence
    clean: float
    corrupted: float
    sweeps: dict[str, tuple[str, ...]]  # what can be swept, by stack

    def recovered(self, difference: Any) -> Any:
        """Share of the change that a difference of logits has: 0 as after the second sentence, 1 as after the first."""
        return (difference - self.corrupted) / (self.clean - self.corrupted)


@dataclass(frozen=True, eq=False)
class Predictions:
    """Next words of three runs: after the first sentence, the second, and the second with a cell patched."""

    words: tuple[str, ...]  # the likeliest of any of them, the likeliest after the patch first
    probabilities: Float[np.ndarray, "3 words"]
    difference: float  # of the two answers' logits after the patch


@dataclass(frozen=True, eq=False)
class CircuitFound:
    """The heads that recover most, the paths between them, and what they do alone, as differences of logits."""

    heads: tuple[Head, ...]  # the strongest first; all of them if the model has fewer
    edges: tuple[Edge, ...]
    alone: float  # after the first sentence, with all other heads as after the second
    random: Float[np.ndarray, " circuits"]  # the same of random circuits with as many heads


@torch.inference_mode()
def compare(model: HubModel, sentences: TwoSentences) -> Comparison:
    """Return what the two runs have in common. HubError, which says why, if they cannot be compared."""
    pair = sentence_pair(model, sentences)
    first, second = pair.runs
    with model.engine.serial, no_recording():
        clean, _, logits = recorded_runs(model.network, pair.clean, pair.corrupted)
        before = float(pair.metric(logits_of(model.network, pair.clean)))
    after = float(pair.metric(logits))
    answers = tuple(plain_text(token) for token in model.read(pair.answers))
    if abs(before - after) < _LEAST_CHANGE:
        raise HubError(
            "After both sentences the logits of {answer} and {other} differ equally: choose other words.",
            answer=f"“{answers[0]}”",
            other=f"“{answers[1]}”",
        )
    tokens = {call.stack: _labels(first.tokens, second.tokens) for call in clean}
    if first.decoder_tokens:
        tokens["decoder"] = _labels(first.decoder_tokens, second.decoder_tokens)
    sweeps = {}
    for stack in tokens:
        found = {name.rpartition(".")[2] for name in clean.states if name.startswith(f"{stack}.")}
        kinds = {call.kind for call in clean if call.stack == stack}
        states = [name for name in ("residual", "attention", "cross", "mlp") if name in found]
        sweeps[stack] = (*states, *(name for name, kind in HEADS.items() if kind in kinds))
    return Comparison(tokens, (answers[0], answers[1]), before, after, sweeps)


@torch.inference_mode()
def sweep(model: HubModel, sentences: TwoSentences, stack: str, what: str) -> Float[Tensor, "layers columns"]:
    """Return the difference of the answers' logits after the second sentence with one cell taken from the first."""
    pair = sentence_pair(model, sentences)
    with model.engine.serial, no_recording():
        return patch_sweep(model.network, pair.clean, pair.corrupted, pair.metric, what, stack=stack)


@torch.inference_mode()
def predictions(
    model: HubModel, sentences: TwoSentences, stack: str, what: str, layer: int, column: int
) -> Predictions:
    """Return what follows the first sentence, the second, and the second with one cell of the first."""
    pair = sentence_pair(model, sentences)
    with model.engine.serial, no_recording():
        clean, _, corrupted = recorded_runs(model.network, pair.clean, pair.corrupted)
        edit: Edit
        if what in HEADS:
            calls = [call for call in clean if (call.stack, call.kind) == (stack, HEADS[what])]
            name, edit = calls[layer].site, patch(column, calls[layer], "output")
        else:
            names = [name for name in clean.states if name.startswith(f"{stack}.") and name.endswith(f".{what}")]
            name, edit = names[layer], patch_state(clean.states[names[layer]], queries=column)
        before = logits_of(model.network, pair.clean)
        with intervene({name: edit}):
            patched = logits_of(model.network, pair.corrupted)
    runs = torch.stack([logits[0, -1].float().softmax(dim=-1).cpu() for logits in (before, corrupted, patched)])
    shown = dict.fromkeys(int(i) for run in (2, 1, 0) for i in runs[run].topk(_LISTED).indices)
    chosen = sorted(shown, key=lambda i: -float(runs[2, i]))
    words = tuple(token.label for token in model.read(chosen))
    return Predictions(words, runs[:, chosen].numpy(), float(pair.metric(patched)))


@torch.inference_mode()
def circuit(model: HubModel, sentences: TwoSentences, count: int) -> CircuitFound:
    """Return the circuit of so many heads."""
    pair = sentence_pair(model, sentences)
    with model.engine.serial, no_recording():
        return find_circuit(model.network, pair.clean, pair.corrupted, pair.metric, count)


@torch.no_grad()
def find_circuit(
    network: torch.nn.Module,
    clean: Mapping[str, Any],
    corrupted: Mapping[str, Any],
    metric: Callable[[Tensor], Tensor],
    count: int,
) -> CircuitFound:
    """Return the circuit of the heads whose patch changes the metric most."""
    inputs = network, clean, corrupted, metric
    run, _, logits = recorded_runs(network, clean, corrupted)
    effects: dict[Head, float] = {}
    for stack, kind in dict.fromkeys((call.stack, call.kind) for call in run):
        sites = [call.site for call in run if (call.stack, call.kind) == (stack, kind)]
        what = next(name for name, each in HEADS.items() if each == kind)
        grid = (patch_sweep(*inputs, what, stack=stack) - metric(logits).float().cpu()).abs()
        effects |= {(site, head): float(grid[i, head]) for i, site in enumerate(sites) for head in range(grid.shape[1])}
    ranked = sorted(effects, key=lambda head: -effects[head])
    generator = torch.Generator().manual_seed(0)
    draws = [torch.randperm(len(ranked), generator=generator)[:count].tolist() for _ in range(DRAWS)]
    random = [[ranked[i] for i in draw] for draw in draws]
    alone = circuits_alone(*inputs, [ranked[:count], *random])
    edges = circuit_edges(*inputs, ranked[:count])
    return CircuitFound(tuple(ranked[:count]), edges, float(alone[0]), alone[1:].numpy())


def _labels(first: Sequence[Token], second: Sequence[Token]) -> tuple[tuple[str, str], ...]:
    return tuple((a.label, b.label) for a, b in zip(first, second, strict=True))
