"""Queries of the lab about a model and its run, which a worker or another machine can call."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float

from viz_core.hub import HubCard, HubModel, HubRun, Positions
from viz_core.hub.kinds.dual_encoder import DualEncoder
from viz_core.maps.measures import weight_shares
from viz_core.maps.residuals import future_weight, row_error, row_sum_error
from viz_core.models.projections import output_projection
from viz_core.trace import AttentionCall, site_of
from viz_core.trace.sites import is_linear_attention
from viz_core.trace.source import Projected

CLAIMED_ROWS = 256
"""So many rows of each map are held to the claims."""

_CORNER = 32


def read_card(model: HubModel) -> HubCard:
    """What there is to know of a model."""
    return model.card


def position_schemes(model: HubModel) -> tuple[Positions, ...]:
    """Its position schemes, with the numbers it really uses."""
    return model.positions


def recorded_bytes(_model: HubModel, run: HubRun) -> int:
    """Bytes of the recording."""
    return run.trace.nbytes


def map_residuals(model: HubModel, run: HubRun) -> dict[str, float]:
    """Largest violation of each claim about the maps, by its name."""
    decoder = [call for call in run.trace if (call.stack, call.kind) == ("decoder", "self")]
    first = run.num_prompt_tokens if model.card.both_ways else 0
    return {
        "rows": row_sum_error(run.trace, CLAIMED_ROWS),
        "future": max((future_weight(call, CLAIMED_ROWS, first) for call in decoder), default=0.0),
    }


def broken_residuals(model: HubModel, run: HubRun) -> dict[str, float]:
    """The same for broken maps: rounded to 8 bits, and without a mask."""
    whole = [call for call in run.trace if not call.signed]
    seen = [call.weights(queries=slice(max(0, call.num_queries - CLAIMED_ROWS), None)) for call in whole]
    decoder = [call for call in whole if (call.stack, call.kind) == ("decoder", "self")]
    first = run.num_prompt_tokens if model.card.both_ways else 0
    unmasked = [
        AttentionCall(call.site, replace(call.source, mask=None, causal=False))
        for call in decoder
        if isinstance(call.source, Projected)
    ]
    return {
        "rows": max((float(row_error((weights * 255).round() / 255)) for weights in seen), default=0.0),
        "future": max((future_weight(call, CLAIMED_ROWS, first) for call in unmasked), default=0.0),
    }


def corner_of_map(
    _model: HubModel, run: HubRun, site: str, head: int, broken: str
) -> Float[np.ndarray, "queries keys"]:
    """The first 32 rows and columns of one head's map; `broken` is "", "eight-bits" or "no-mask"."""
    call = run.trace[site]
    if broken == "no-mask" and isinstance(call.source, Projected):
        call = AttentionCall(call.site, replace(call.source, mask=None, causal=False))
    size = slice(0, _CORNER)
    weights = call.weights(head=head, queries=size, keys=size)[0].numpy()
    return (weights * 255).round() / 255 if broken == "eight-bits" else weights


def row_of_heads(_model: HubModel, run: HubRun, site: str, token: int) -> Float[np.ndarray, "heads tokens"]:
    """Attention of a token by every head of a layer; of signed maps the share of its weight."""
    call = run.trace[site]
    weights = call.weights(queries=slice(token, token + 1))
    row = (weight_shares(weights) if call.signed else weights)[0, :, 0]
    return row[:, -len(run.tokens) :].numpy()  # a learned sink stands before them


@torch.inference_mode()
def likeness(model: HubModel, run: HubRun) -> tuple[Float[np.ndarray, " tokens"], float]:
    """Cosines of a text with a picture and its tokens, and how far the first is from the model's own logit."""
    engine = _dual_encoder(model)
    logit = float(engine.again(run.inputs).logits_per_image) - float(getattr(engine.model, "logit_bias", 0.0))
    scale = float(engine.model.logit_scale.exp())
    return run.output.numpy(), abs(scale * float(run.output[0]) - logit) / scale


@torch.inference_mode()
def pooling(model: HubModel, run: HubRun) -> Float[np.ndarray, "heads patches"] | None:
    """Weights of each head of the pooling over patches; None where a class token stands for the picture."""
    engine = _dual_encoder(model)
    return engine.pooling_weights(engine.again(run.inputs)).numpy() if engine.pools_patches else None


def _dual_encoder(model: HubModel) -> DualEncoder:
    if not isinstance(model.engine, DualEncoder):
        raise ValueError(f"model: expected one that compares a picture with a text, got {model.card.name}")
    return model.engine


def picture_shares(_model: HubModel, run: HubRun, token: int) -> Float[np.ndarray, "layers heads"]:
    """How much of a token's attention goes to the picture, by every head of the language model."""
    places = np.concatenate([grid.places.ravel() for grid in run.patches])
    layers = [call.site for call in run.trace if call.stack == "decoder"]
    return np.stack([row_of_heads(_model, run, site, token)[:, places].sum(axis=1) for site in layers])


def shows_contributions(model: HubModel, run: HubRun) -> bool:
    """Whether contributions of keys can be computed: values are recorded, and every output projection is found."""
    layers = [part for part in model.engine.model.modules() if site_of(part) and not is_linear_attention(part)]
    parts = {name for part in layers for name, _ in part.named_children()}
    if model.engine.holds_maps or parts & {"attn_sub_norm", "o_norm"}:  # norms between heads and projection
        return False
    try:
        for call in run.trace:
            output_projection(model.engine.model, call.site)
    except ValueError:
        return False
    return True
