"""Where the maps of a group come from, and what comes from there."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from viz_core.maps.fingerprints import Fingerprint
from viz_core.view.requests import WeightsRequest


class PartError(ValueError):
    """There is no such part."""


@dataclass(frozen=True)
class Part:
    """An answer: its kind ("exact", "root" or "bytes"), its numbers, and what else the header says of it."""

    kind: Literal["exact", "root", "bytes"]
    array: np.ndarray
    notes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LayerPicture:
    """What the grid shows of one layer: a thumbnail and the measures of each head."""

    # weights in 8 bits (`in_bytes`), max-pooled as in `AttentionCall.overview`
    thumbnails: UInt8[Tensor, "heads rows columns"]
    fingerprints: tuple[Fingerprint, ...]  # one for each head
    row_error: float  # by how much any row of any head misses a sum of 1; whoever draws the maps has read them all
    most: float = 0.0  # the size of the largest weight of signed maps (`in_signed_bytes`); 0 for others


@runtime_checkable
class MapSource(Protocol):
    """Answers for the maps of one group, wherever its queries and keys lie."""

    def picture(self, layer: int) -> LayerPicture:
        """A layer as the grid shows it."""

    def parts(self, requests: Sequence[WeightsRequest]) -> list[Part | PartError]:
        """What all these ask for; where one cannot be had, what is wrong with it."""


def finite_measures(fingerprint: Fingerprint) -> dict[str, float | None]:
    """The measures rounded for JSON, which has no NaN: None where a model's numbers have overflowed."""
    return {name: round(value, 6) if math.isfinite(value) else None for name, value in fingerprint.items()}


def in_bytes(weights: Tensor) -> Tensor:
    """Weights in 8 bits: round(255 sqrt(w)). The root keeps small weights apart, which long maps are made of."""
    return (weights.nan_to_num(0.0).clamp(0, 1).sqrt() * 255).round().to(torch.uint8)


def in_signed_bytes(weights: Tensor) -> tuple[Tensor, float]:
    """Weights of both signs in 8 bits, 128 + round(127 sign(w) sqrt(|w| / m)), and m, the largest |w|."""
    weights = weights.nan_to_num(0.0)
    most = float(weights.abs().amax()) or 1.0
    return (128 + (weights.sign() * (weights.abs() / most).sqrt() * 127).round()).to(torch.uint8), most
