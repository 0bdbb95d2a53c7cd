"""Calibration of a classifier: how often it is right, by its confidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from jaxtyping import Bool, Float
from torch import Tensor


class Bin(TypedDict):
    """Pictures whose most likely label has a probability from `start` to `stop`; both means are from 0 to 1."""

    start: float
    stop: float
    pictures: int
    confidence: float  # mean probability of the most likely label
    accuracy: float  # share of pictures whose most likely label is correct


def calibration_bins(confidence: Float[Tensor, "n"], correct: Bool[Tensor, "n"], num_bins: int = 10) -> list[Bin]:
    """Group pictures by confidence into bins of equal width; empty bins are left out (Guo 2017, section 2).

    Args:
        confidence: probability of each picture's most likely label.
        correct: whether that label is correct.

    Raises:
        ValueError: if there is no picture, no bin, or a probability outside [0, 1].
    """
    if num_bins < 1 or not len(confidence) or confidence.min() < 0 or confidence.max() > 1:
        raise ValueError(f"expected pictures with probabilities from 0 to 1 and at least 1 bin, got {num_bins} bins")
    number = (confidence * num_bins).long().clamp(max=num_bins - 1)
    return [
        Bin(
            start=i / num_bins,
            stop=(i + 1) / num_bins,
            pictures=int((number == i).sum()),
            confidence=float(confidence[number == i].double().mean()),
            accuracy=float(correct[number == i].double().mean()),
        )
        for i in number.unique().tolist()
    ]


def expected_calibration_error(bins: Sequence[Bin]) -> float:
    """ECE = sum_b n_b / n |accuracy_b - confidence_b|, 0 to 1 (Guo 2017, equation 3).

    Raises:
        ValueError: if there is no bin.
    """
    if not bins:
        raise ValueError("bins: expected at least one, got none")
    count = sum(each["pictures"] for each in bins)
    return sum(each["pictures"] * abs(each["accuracy"] - each["confidence"]) for each in bins) / count


def bin_of(bins: Sequence[Bin], confidence: float) -> Bin | None:
    """Return the bin of a confidence, or None where no picture was in it."""
    inside = (each for each in bins if each["start"] <= confidence < each["stop"] or confidence == each["stop"] == 1)
    return next(inside, None)
