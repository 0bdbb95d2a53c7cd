"""Alignments from cross-attention: of words, and of tokens with times in sound by dynamic time warping."""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.maps.word_maps import merge_words
from viz_core.trace import AttentionCall
from viz_core.trace.arguments import check_axes, check_tensors, check_whole

Reading = Literal["written", "read"]
"""Whose source word a row of cross-attention is taken for: the word its step writes, or the one it has just read."""

HeadErrors = tuple[tuple[tuple[float, float], ...], ...]
"""Alignment error rates of cross-attention: for each layer a pair for each head, in the order of `Reading`."""


def alignment(
    call: AttentionCall,
    reading: Reading = "written",
    *,
    row: int = 0,
    target_words: Sequence[int] | None = None,
    source_words: Sequence[int] | None = None,
) -> Float[Tensor, "heads targets sources"]:
    """Weights of each target word on the source words, for every head of a teacher-forced decoder's cross-attention.

    Step i reads y_(i-1) and writes y_i. For the word written, y_i is aligned by row i; for the word read, by
    row i + 1, the step whose input it is, so that the last token, which is never read, has no row
    (Chen 2020, "Accurate Word Alignment Induction from Neural Machine Translation", section 3: Shift-Att).
    Where tokens are pieces of words, rows are averaged and columns summed.

    Args:
        call: of the cross-attention, with a row for each target token, the end included.
        reading: which of the two.
        row: of the batch.
        target_words: the number of the word each target token is a piece of; each token is a word unless given.
        source_words: the same for the source.

    Raises:
        ValueError: if the call is not cross-attention, the reading is neither, there is but one step and it is asked
            for the word read, or there is not one number for each token.
    """
    if not isinstance(call, AttentionCall) or call.kind != "cross":
        raise ValueError(f"call: expected cross-attention, got {call!r}")
    if reading not in get_args(Reading):
        raise ValueError(f"reading: expected 'written' or 'read', got {reading!r}")
    targets = range(call.num_queries) if target_words is None else target_words
    sources = range(call.num_keys) if source_words is None else source_words
    if (len(targets), len(sources)) != (call.num_queries, call.num_keys):
        wanted = f"{call.num_queries} target and {call.num_keys} source tokens"
        raise ValueError(f"expected words for {wanted}, got {len(targets)} and {len(sources)}")
    weights = call.weights()[row]
    if reading == "written":
        return merge_words(weights, targets, sources)
    if call.num_queries < 2:
        raise ValueError(f"call: expected at least two steps, so that a word is read, got {call.num_queries}")
    return merge_words(weights[:, 1:], targets[:-1], sources)


def best_aligner(errors: HeadErrors, reading: Reading) -> tuple[float, int, int]:
    """Lowest alignment error rate for this reading, with its layer and head, each counted from 0.

    Raises:
        ValueError: if there is no head.
    """
    of = get_args(Reading).index(reading)
    rates = [(pair[of], layer, head) for layer, pairs in enumerate(errors) for head, pair in enumerate(pairs)]
    if not rates:
        raise ValueError("errors: expected those of at least one head, got none")
    return min(rates)


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
