"""Recorded results of small runs that answer exercises of the book."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from statistics import fmean

from viz_core.runtime.assets import ASSETS, reading

RECORDED = ASSETS / "book" / "exercises.json"


@dataclass(frozen=True)
class Depth:
    """A Transformer of the book's with so many blocks on each side: seconds for an epoch, and losses of each seed."""

    seconds: float
    training: tuple[float, ...]
    held_out: tuple[float, ...]


@dataclass(frozen=True)
class Recorded:
    """The results.

    Attributes:
        depths: by the number of blocks.
        seconds: of an update of a small Vision Transformer, by the side of its pictures in pixels.
        right: share of held-out pictures named rightly by each seed, by what was changed.
    """

    depths: Mapping[int, Depth]
    seconds: Mapping[int, float]
    right: Mapping[str, tuple[float, ...]]

    def gains(self, change: str) -> tuple[float, ...]:
        """Return the increase of each seed's share by a change, on the same pictures."""
        return tuple(new - old for new, old in zip(self.right[change], self.right["as-it-is"], strict=True))


@cache
def recorded() -> Recorded:
    """Return the results.

    Raises:
        AssetError: if the file is missing or damaged.
    """
    with reading(RECORDED):
        found = json.loads(RECORDED.read_text(encoding="utf-8"))
        depths = {
            int(depth): Depth(
                fmean(run["seconds"] for run in runs),
                tuple(run["train_loss"] for run in runs),
                tuple(run["validation_loss"] for run in runs),
            )
            for depth, runs in found["deeper"].items()
        }
        seconds = {int(side): float(value) for side, value in found["seconds"].items()}
        return Recorded(depths, seconds, {name: tuple(values) for name, values in found["right"].items()})
