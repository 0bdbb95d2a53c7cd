"""Start times of tokens in sound, by dynamic time warping over the maps of aligning heads."""

import numpy as np
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.trace.arguments import check_axes, check_tensors, check_whole


def warping_path(cost: Float[np.ndarray, "rows columns"]) -> Int[np.ndarray, "steps 2"]:
    """Cheapest path from the first cell to the last in steps down, across or diagonal (dynamic time warping).

    D_ij = c_ij + min(D_i-1,j-1, D_i-1,j, D_i,j-1), worked out one antidiagonal after the other, whose cells need none
    of each other; then back from the end to where each least came from, both by one where several are alike (Sakoe and
    Chiba 1978, section II). ValueError if there is no cell, or a cost is NaN.

    Returns:
        Row and column of each cell on the way.
    """
    if not cost.size or np.isnan(cost).any():
        raise ValueError(f"cost: expected at least one cell and no NaN, got shape {cost.shape}")
    rows, columns = cost.shape
    least = np.full((rows + 1, columns + 1), np.inf)
    least[0, 0] = 0
    for both in range(2, rows + columns + 1):
        i = np.arange(max(1, both - columns), min(rows, both - 1) + 1)
        j = both - i
        before = np.minimum(np.minimum(least[i - 1, j - 1], least[i - 1, j]), least[i, j - 1])
        least[i, j] = cost[i - 1, j - 1] + before
    path = [(rows, columns)]
    while path[-1] != (1, 1):
        i, j = path[-1]
        path.append(min([(i - 1, j - 1), (i - 1, j), (i, j - 1)], key=least.__getitem__))
    return np.array(path[::-1]) - 1


def token_starts(weights: Float[Tensor, "heads tokens keys"], width: int = 7) -> Int[np.ndarray, " tokens"]:
    """Key at which each token begins, by the cross-attention of heads that align with the sound.

    Each weight is told as how far it lies above the mean of its key over tokens, in standard deviations; a median over
    `width` keys in a row takes single spikes away; heads are averaged; and the way that gathers most is taken. They
    never go back (Whisper's own word times: openai/whisper, timing.py, `find_alignment`). ValueError if there is no
    head, token or key, weights are not a floating-point tensor, or the width is not odd.

    Args:
        weights: of each token's step over the keys that are sound.
        width: odd.
    """
    check_tensors(weights=weights)
    check_axes("heads tokens keys", weights=weights)
    check_whole(width=width)
    if not weights.numel() or width % 2 != 1 or width < 1:
        raise ValueError(f"expected weights and an odd width, got {tuple(weights.shape)} and {width}")
    spread = weights.std(dim=-2, keepdim=True, correction=0)
    above = (weights - weights.mean(dim=-2, keepdim=True)) / spread.where(spread > 0, 1.0)
    gathered = median_filter(above, width).mean(dim=0)
    path = warping_path(-gathered.double().numpy())
    first = np.flatnonzero(np.diff(path[:, 0], prepend=-1))
    return path[first, 1]


def median_filter(values: Float[Tensor, "*batch keys"], width: int) -> Float[Tensor, "*batch keys"]:
    """Median of each value and its neighbours, `width` in all; rows are mirrored at their ends.

    A row too short to be mirrored stays as it is.
    """
    half = width // 2
    if values.shape[-1] <= half:
        return values
    flat = values.reshape(1, -1, values.shape[-1])
    padded = F.pad(flat, (half, half), mode="reflect")
    return padded.unfold(-1, width, 1).median(dim=-1).values.reshape(values.shape)
