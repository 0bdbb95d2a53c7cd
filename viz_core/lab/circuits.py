"""The logit lens, the tokens that a head reads and writes, and the parts of a single score."""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.circuits import ScoreAttribution, direction_tokens, ov_circuit, qk_circuit, score_attribution
from viz_core.circuits.logits import closest, double, norms_among
from viz_core.hub import HubModel, HubRun
from viz_core.hub.store import HubError
from viz_core.maps.score_products import ScoreProducts, score_products
from viz_core.pretrained import ImageClassifier, Translation, Translator
from viz_core.trace import HeadsOff, intervene, no_recording, record, switched_off
from viz_core.trace.source import Projected

MAX_PLACES = 24
"""So many of the last tokens are read."""


@dataclass(frozen=True, eq=False)
class LayerWords:
    """Predictions of each layer: rows are the embedding and the layers, columns the last tokens read."""

    read: tuple[str, ...]  # the token of each column
    tokens: tuple[tuple[str, ...], ...]  # the likeliest one in each place
    probabilities: Float[np.ndarray, "layers places"]  # of the likeliest one
    final_word: Float[np.ndarray, "layers places"]  # of the token that the last row finds likeliest
    residual: float  # max |logits of the last row - logits of the model|


@torch.inference_mode()
def through_the_layers(model: HubModel, run: HubRun) -> LayerWords:
    """Repeat a run's pass and decode the states after each layer as if they were the last (nostalgebraist 2020).

    What follows the layers is the model's own: its last norm where it has one, then all that its head does.
    """
    engine = model.engine
    if not engine.has_lens(engine.head):
        raise HubError("{name} has no output layer over words behind one stack of layers.", name=engine.model_name)
    whole, inputs = engine.model, {k: v for k, v in run.inputs.items() if k != "logits_to_keep"}
    base = whole.base_model_prefix
    with engine.serial, no_recording():
        with record(states=True) as trace:
            last = getattr(whole, base)(**inputs)
        states = [state for name, state in trace.states.items() if name.endswith((".embedding", ".residual"))]
        if not states:
            raise HubError("{name} has no list of layers with attention.", name=engine.model_name)
        end = last.last_hidden_state
        norms = (nn.Identity(), *norms_among(getattr(whole, base).modules(), double(end)))
        norm = closest(((norm, norm(double(states[-1]))) for norm in norms), double(end), end.dtype)
        if norm is None:
            raise HubError("{name} has no output layer over words behind one stack of layers.", name=engine.model_name)
        own = _of_places(whole(**inputs).logits)
        rows, logits = [], own
        for state in states:
            normed = norm(double(_of_places(state)[None])).to(end.dtype).to(end.device)
            following = type(last)(**{**last, "last_hidden_state": normed})
            made = copy.copy(whole)  # whose stack returns this
            made.__dict__[base] = lambda *_, _output=following, **__: _output
            logits = _of_places(made(**inputs).logits)
            rows.append(logits.float().softmax(dim=-1))
    best = [row.max(dim=-1) for row in rows]
    final_word = best[-1].indices[:, None]
    return LayerWords(
        tuple(token.label for token in run.tokens[-len(own) :]),
        tuple(tuple(token.label for token in engine.read(each.indices.tolist())) for each in best),
        torch.stack([each.values for each in best]).cpu().numpy(),
        torch.stack([row.gather(-1, final_word)[:, 0] for row in rows]).cpu().numpy(),
        float((logits - own).float().abs().max()),
    )


def _of_places(values: Float[Tensor, "1 n width"]) -> Float[Tensor, "places width"]:
    return values[0, -MAX_PLACES:]


_DIRECTIONS, _TOKENS = 2, 6


@dataclass(frozen=True)
class Direction:
    """A direction of a head's circuit: of "QK" tokens of queries and keys, of "OV" tokens read and written."""

    kind: str
    strength: float  # its singular value
    first: tuple[str, ...]
    second: tuple[str, ...]


@dataclass(frozen=True)
class HeadCircuits:
    """The strongest directions of a head, and why there are none of a kind of circuit."""

    directions: tuple[Direction, ...]
    refused: tuple[tuple[str, str], ...]  # kind, and the library's reason


def head_circuits(model: HubModel, site: str, head: int) -> HeadCircuits:
    """Query: what a head's matrices read and write."""
    found, refused = [], []
    if site.startswith("vision."):
        return HeadCircuits((), tuple((kind, "The vision tower reads patches, not tokens.") for kind in ("QK", "OV")))
    for kind, circuit_of in (("QK", qk_circuit), ("OV", ov_circuit)):
        try:
            circuit = circuit_of(model.network, site, head)
            for number in range(_DIRECTIONS):
                pair = direction_tokens(model.network, circuit, number, _TOKENS)
                first, second = (tuple(token.label for token in model.read(ids.tolist())) for ids in pair)
                found.append(Direction(kind, float(circuit.singular_values[number]), first, second))
        except (ValueError, NotImplementedError) as error:  # the latter of models with several tables of tokens
            refused.append((kind, str(error)))
    return HeadCircuits(tuple(found), tuple(refused))


def products_of_pair(_model: Any, run: Any, site: str, head: int, query: int, key: int, row: int = 0) -> ScoreProducts:
    """`score_products` of a recorded run; KeyError if it has no such site."""
    return score_products(run.trace[site], head, query, key, row)


def keeps_queries_and_keys(_model: Any, run: Any, site: str) -> bool:
    """Whether a call of a run has scores for `score_products`: not a map recorded whole, nor one without a softmax."""
    call = run.trace[site]
    return isinstance(call.source, Projected) and not call.signed


@torch.inference_mode()
def score_by_parts(
    model: Any, run: Any, site: str, head: int, query: int, key: int, row: int = 0, off: HeadsOff = ()
) -> ScoreAttribution:
    """`score_attribution` of a recorded run, whose pass is repeated with the states of its layers and these heads off.

    ValueError as `score_attribution`, or if the pass cannot be repeated.
    """
    edits = intervene(switched_off(off))
    if isinstance(model, HubModel) and isinstance(run, HubRun):
        with model.engine.serial, no_recording(), edits, record(values=True, states=True) as trace:
            if run.inputs and "pixels" in run.inputs:  # of a classifier that ships
                model.network(*run.inputs.values())
            else:
                model.network(**run.inputs)
        return score_attribution(model.network, trace, site, head, query, key, row)
    if isinstance(model, Translator) and isinstance(run, Translation):
        inputs: tuple[Any, ...] = model.teacher_forced(run.source_ids, run.target_ids)
    elif isinstance(model, ImageClassifier):
        inputs = (run.prepared.pixels.to(model.device),)
    else:
        raise ValueError("model: expected one whose pass can be repeated, got another")
    with no_recording(), edits, record(values=True, states=True) as trace:
        model.model(*inputs)
    return score_attribution(model.model, trace, site, head, query, key, row)
