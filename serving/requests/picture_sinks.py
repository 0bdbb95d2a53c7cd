"""Attention sinks among the patches of a picture: much weight, little added."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from viz_core.hub.model import HubModel
from viz_core.hub.runs.run import HubRun
from viz_core.maps.contributions import value_lengths
from viz_core.models.projections import output_projection

SINK_WEIGHT, SINK_LENGTH = 3.0, 0.5
"""A patch is a sink from 3 times the weight and up to half the length of the mean patch."""


@dataclass(frozen=True, eq=False)
class PictureRows:
    """A token's attention to the patches before it, by the heads of a layer."""

    weights: Float[np.ndarray, "heads tokens"]
    added: Float[np.ndarray, "heads tokens"]  # |a_ij W_o^h v_j| of each patch (Kobayashi 2020), 0 of all else
    attention: Float[np.ndarray, " tokens"]  # mean over heads and all later tokens, over that of the mean patch
    lengths: Float[np.ndarray, " tokens"]  # |W_o^h v_j|, mean over heads, over that of the mean patch
    sinks: tuple[int, ...]  # patches that draw much attention whatever the token, and add little


@torch.inference_mode()
def picture_rows(model: HubModel, run: HubRun, site: str, token: int) -> PictureRows:
    """A token's attention to the patches of a picture or video, what they add, and which of them are sinks.

    Weight alone is not evidence: models attend to the same few patches, often a corner, for every word (Kang 2025, "See
    What You Are Told"). Here a patch is a sink by `SINK_WEIGHT` and `SINK_LENGTH`, a convention of this app.

    Raises:
        ValueError: if the run has no picture in a text, or the layer's output projection is not found.
    """
    if not run.patches:
        raise ValueError("run: expected one of a text with a picture or a video, got one without")
    places = np.concatenate([grid.places.ravel() for grid in run.patches])
    call, count = model.recorded_again(run)[site], len(run.tokens)
    first = min(int(places.max()) + 1, count - 1)
    rows = call.weights(queries=slice(first, None))[0, ..., -count:].abs()
    own = call.weights(queries=slice(token, token + 1))[0, :, 0, -count:]
    lengths = value_lengths(call, output_projection(model.network, site))[0, ..., -count:]
    lengths = lengths[:, token] if lengths.dim() == 3 else lengths  # of this query where the layer has a gate
    patch = torch.zeros(count).index_fill(0, torch.from_numpy(places), 1.0)
    attention, size = (
        each * patch / (each * patch).sum().clamp_min(1e-30) * len(places)
        for each in (rows.mean((0, 1)), lengths.mean(0))
    )
    sinks = ((attention >= SINK_WEIGHT) & (size <= SINK_LENGTH) & (patch > 0)).nonzero().flatten()
    added = own.abs() * lengths * patch
    return PictureRows(own.numpy(), added.numpy(), attention.numpy(), size.numpy(), tuple(sinks.tolist()))
