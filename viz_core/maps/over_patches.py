"""Attention of a token of a vision transformer as maps over the patches of its picture."""

from __future__ import annotations

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from viz_core.maps.distance import check_tokens
from viz_core.trace import Trace


def token_attention(
    trace: Trace, token: int, grid: tuple[int, int], num_special: int = 1
) -> Float[Tensor, "layers heads rows columns"]:
    """Weights of one token on the patches in every layer and head, as maps over the grid.

    The maps sum to 1 less what goes to the special tokens: weights are not divided anew.

    Args:
        trace: of one picture: self-attention calls alone.
        token: 0 for the class token, num_special + r C + c for the patch in row r and column c of C.
        grid: rows and columns of patches.
        num_special: tokens before the patches.

    Raises:
        ValueError: if the trace is empty, holds other than the special tokens and patches, or has no such token.
    """
    if not len(trace):
        raise ValueError("trace: expected at least one attention call, got none")
    maps = []
    for call in trace:
        if not 0 <= token < call.num_queries:
            raise ValueError(f"token: expected 0 to {call.num_queries - 1}, got {token}")
        check_tokens((call.num_queries, call.num_keys), grid, num_special)
        row = call.weights(queries=slice(token, token + 1))[0, :, 0, num_special:]
        maps.append(rearrange(row, "heads (r c) -> heads r c", r=grid[0]))
    return torch.stack(maps)
