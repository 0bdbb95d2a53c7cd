"""Logit lens: predictions after each layer, by the model's own last norm and output layer."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.circuits.logits import closest, double, norms_among
from viz_core.hub.model import HubModel
from viz_core.hub.runs.run import HubRun
from viz_core.hub.store.checks import HubError
from viz_core.trace import no_recording, record

MOST_PLACES = 24
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
    return values[0, -MOST_PLACES:]
