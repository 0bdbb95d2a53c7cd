"""How often a classifier is right when it says it is sure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from jaxtyping import Bool, Float
from torch import Tensor


class Bin(TypedDict):
    """Pictures whose likeliest label got a probability from `start` to `stop`; the two means are 0 to 1."""

    start: float
    stop: float
    pictures: int
    said: float  # mean probability of the likeliest label
    right: float  # share of them whose likeliest label is the right one


def calibration_bins(said: Float[Tensor, "n"], right: Bool[Tensor, "n"], num_bins: int = 10) -> list[Bin]:
    """Pictures by how sure the model is, in bins of equal width; empty ones are left out (Guo 2017, section 2).

    Args:
        said: probability of each picture's likeliest label.
        right: whether that label is the right one.

    Raises:
        ValueError: if there is no picture, no bin, or a probability is not from 0 to 1.
    """
    if num_bins < 1 or not len(said) or said.min() < 0 or said.max() > 1:
        raise ValueError(f"expected pictures with probabilities from 0 to 1 and at least 1 bin, got {num_bins} bins")
    number = (said * num_bins).long().clamp(max=num_bins - 1)
    bins = []
    for i in range(num_bins):
        here = number == i
        if here.any():
            means = (float(said[here].double().mean()), float(right[here].double().mean()))
            bins.append(
                Bin(
                    start=i / num_bins, stop=(i + 1) / num_bins, pictures=int(here.sum()), said=means[0], right=means[1]
                )
            )
    return bins


def expected_calibration_error(bins: Sequence[Bin]) -> float:
    """ECE = sum_b n_b / n |right_b - said_b|, 0 to 1 (Guo 2017, equation 3).

    Raises:
        ValueError: if there is no bin.
    """
    if not bins:
        raise ValueError("bins: expected at least one, got none")
    count = sum(each["pictures"] for each in bins)
    return sum(each["pictures"] * abs(each["right"] - each["said"]) for each in bins) / count


def bin_of(bins: Sequence[Bin], said: float) -> Bin | None:
    """The bin that a probability falls into; None where no picture was in it."""
    return next((each for each in bins if each["start"] <= said < each["stop"] or said == each["stop"] == 1), None)
