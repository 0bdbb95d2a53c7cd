"""Error rate of word alignments against alignments drawn by people."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from jaxtyping import Float
from torch import Tensor

Pairs = Collection[tuple[int, int]]  # (source word, target word), each from 0


def aligned_pairs(weights: Float[Tensor, "targets sources"], num_sources: int) -> set[tuple[int, int]]:
    """The source word with the largest weight for each target word, as (source, target).

    A target word that looks most at something from `num_sources` on, such as the end of the sentence, has no partner:
    A = {(argmax_j w_ij, i)} (Chen 2020, section 3).
    """
    return {(source, target) for target, source in enumerate(weights.argmax(dim=-1).tolist()) if source < num_sources}


def alignment_error_rate(found: Sequence[Pairs], sure: Sequence[Pairs], possible: Sequence[Pairs]) -> float:
    """Alignment error rate over all sentences, 1 - (|A & S| + |A & P|) / (|A| + |S|): 0 to 1, 0 is perfect.

    S are pairs that people were sure of, P those and the ones they thought possible
    (Och and Ney 2003, "A Systematic Comparison of Various Statistical Alignment Models", section 5.1).

    Args:
        found: A, the pairs of each sentence.
        sure: those that people were sure of.
        possible: those that they thought possible; sure ones need not be repeated.

    Raises:
        ValueError: if the three are not of equally many sentences, or there is no pair found and none sure.
    """
    sizes = {len(found), len(sure), len(possible)}
    if len(sizes) != 1:
        raise ValueError(f"expected equally many sentences, got {len(found)}, {len(sure)} and {len(possible)}")
    hits = pairs = 0
    for a, s, p in zip(map(set, found), map(set, sure), map(set, possible), strict=True):
        hits += len(a & s) + len(a & (s | p))
        pairs += len(a) + len(s)
    if not pairs:
        raise ValueError("expected at least one pair found or sure, got none")
    return 1 - hits / pairs
