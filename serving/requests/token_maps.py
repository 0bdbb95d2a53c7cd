"""What a token of a picture attends to over the patches."""

from __future__ import annotations

from typing import NamedTuple

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from viz_core.maps.distance import check_tokens, mean_attention_distance
from viz_core.maps.measures import attention_entropy
from viz_core.maps.rollout import HeadFusion, attention_rollout, fuse_heads
from viz_core.pretrained import Classification
from viz_core.pretrained.picture_model import PictureModel


class TokenRollout(NamedTuple):
    """One token's attention in one layer, and its rollout through all layers."""

    raw: Float[Tensor, " n"]  # weights of a layer whose heads are fused
    rollout: Float[Tensor, " n"]  # `attention_rollout` of all layers; sums to 1
    row_error: float  # max |1 - sum of a row| over all rows of the rollout; 0 up to rounding


def patch_positions(model: PictureModel, grid: tuple[int, int]) -> Float[Tensor, "1 patches num_hiddens"] | None:
    """The learned positions of a grid of patches; None where the model has no such table."""
    return model.position_table(grid)


def label_relevance(model: PictureModel, run: Classification, label: str) -> Float[Tensor, "tokens tokens"]:
    """Gradient-weighted relevance of each token (columns) to each (rows) for a label."""
    return model.relevance(run.prepared, label)


def token_in_layer(
    _model: PictureModel, run: Classification, token: int, layer: int, fusion: HeadFusion, discard: float
) -> TokenRollout:
    """A token's row of one layer's fused map and of the rollout."""
    layers = _layers(run)
    rolled = attention_rollout(layers, fusion, discard)
    error = float((rolled.sum(dim=-1) - 1).abs().max())
    return TokenRollout(fuse_heads(layers[layer], fusion)[token], rolled[token], error)


def heads_measured(model: PictureModel, run: Classification) -> dict[str, Float[Tensor, "layers heads"]]:
    """ "distance": mean attention distance in pixels, "entropy": mean over queries in bits, of every head."""
    stacked = torch.stack(_layers(run))
    return {
        "distance": mean_attention_distance(stacked, run.grid, model.patch_size, run.num_special),
        "entropy": attention_entropy(stacked).mean(dim=-1),
    }


def token_over_patches(
    _model: PictureModel, run: Classification, token: int
) -> Float[Tensor, "layers heads rows columns"]:
    """Weights of one token on the patches in every layer and head, as maps over the grid.

    The maps sum to 1 less what goes to the special tokens: weights are not divided anew.
    """
    maps = []
    for call in run.trace:
        check_tokens((call.num_queries, call.num_keys), run.grid, run.num_special)
        row = call.weights(queries=slice(token, token + 1))[0, :, 0, run.num_special :]
        maps.append(rearrange(row, "heads (r c) -> heads r c", r=run.grid[0]))
    return torch.stack(maps)


def _layers(run: Classification) -> list[Float[Tensor, "heads tokens tokens"]]:
    return [call.weights()[0] for call in run.trace]
