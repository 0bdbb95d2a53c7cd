"""What attention is worth by the length of the sentence: two models' scores on the same bins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

Bins = Sequence[Mapping[str, float]]  # {from, to, sentences, bleu}, shortest sentences first


def bleu_gaps(better: Bins, other: Bins) -> list[float]:
    """BLEU of the one above BLEU of the other, bin by bin."""
    edges = [[(each["from"], each["to"]) for each in bins] for bins in (better, other)]
    if edges[0] != edges[1]:
        raise ValueError(f"bins: expected the same lengths in both, got {edges[0]} and {edges[1]}")
    return [mine["bleu"] - theirs["bleu"] for mine, theirs in zip(better, other, strict=True)]


def keeps_rising(numbers: Sequence[float]) -> bool:
    """Whether each number is larger than the one before."""
    return all(after > before for before, after in pairwise(numbers))
