"""Confidence intervals of differences between scores, by the paired bootstrap."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float


class Difference(NamedTuple):
    """The difference of a score from the base score, with its 95% interval."""

    value: float
    low: float
    high: float


def paired_bootstrap(
    score: Callable[[Float[np.ndarray, " k"]], float],
    base: Float[np.ndarray, "examples k"],
    other: Float[np.ndarray, "examples k"],
    rounds: int = 1000,
    seed: int = 0,
) -> Difference:
    """score(sum of other) - score(sum of base), with the interval from resampled examples (Koehn 2004, section 4).

    Each round draws as many examples as there are, with replacement, and scores both on the same draw.

    Args:
        score: from statistics of examples, added up, to the score: `bleu_of`, or `percentage_right`.

    Raises:
        ValueError: if the two do not hold the same examples, or there is none.
    """
    if base.shape != other.shape or not len(base):
        raise ValueError(f"expected statistics of the same examples, got shapes {base.shape} and {other.shape}")
    draw, n = np.random.default_rng(seed), len(base)
    times = draw.multinomial(n, np.full(n, 1 / n), size=rounds).astype(np.float64)  # how often each is drawn
    pairs = zip(times @ other, times @ base, strict=True)
    low, high = np.percentile([score(one) - score(two) for one, two in pairs], [2.5, 97.5])
    return Difference(score(other.sum(axis=0)) - score(base.sum(axis=0)), float(low), float(high))


def percentage_right(sums: Float[np.ndarray, "2"]) -> float:
    """100 times the right ones over all: of statistics that are 1 or 0, and 1, for each example."""
    return float(100 * sums[0] / sums[1])
