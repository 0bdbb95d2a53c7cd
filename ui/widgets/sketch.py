"""Drawings that predict an answer: a curve, a row of weights or a star, and their distance from the truth."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

TOP = 99
"""A drawing is encoded for the URL in levels of two digits, 00 at the bottom of the board and 99 at its top."""

# The largest distance that counts as right: a share of the board's height, of the weight, of its diagonal.
_TOLERANCE = {"curve": 0.05, "weights": 0.12, "star": 0.06}

Numbers = Float[np.ndarray, "numbers"]


@dataclass(frozen=True)
class Board:
    """What a reader draws on.

    Attributes:
        kind: "curve", a height at each place; "weights", a share for each name; "star", one point in the plane.
        places: x of the curve's heights; for a star the limits of the x axis.
        low, high: limits of the y axis.
        names: of the weights.
    """

    kind: Literal["curve", "weights", "star"]
    places: tuple[float, ...] = (0.0, 1.0)
    low: float = 0.0
    high: float = 1.0
    names: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Number of values in a drawing."""
        return {"curve": len(self.places), "weights": len(self.names), "star": 2}[self.kind]

    @property
    def _spans(self) -> tuple[tuple[float, float], tuple[float, float]]:
        return (self.places[0], self.places[-1]), (self.low, self.high)

    def levels(self, values: Numbers) -> list[float]:
        """Return values as levels, 0 to 99 within the board; weights as shares."""
        if self.kind == "weights":
            return [float(share) for share in values]
        spans = self._spans if self.kind == "star" else (self._spans[1],) * len(values)
        return [round(TOP * (float(v) - low) / (high - low), 2) for v, (low, high) in zip(values, spans, strict=True)]

    def read(self, text: str | None) -> Numbers | None:
        """Return the drawing encoded in digits; None if they encode none."""
        if text is None or not re.fullmatch(rf"[0-9]{{{2 * self.count}}}", text):
            return None
        levels = np.array([int(text[i : i + 2]) for i in range(0, len(text), 2)], dtype=np.float64)
        if self.kind == "weights":
            return levels / levels.sum() if levels.sum() else None
        spans = np.array(self._spans if self.kind == "star" else (self._spans[1],) * self.count)
        return spans[:, 0] + levels / TOP * (spans[:, 1] - spans[:, 0])

    def distance(self, one: Numbers, other: Numbers) -> float:
        """Return the distance of two drawings: mean |a - b| of curves, sum |a - b| / 2 of weights, |a - b| of stars."""
        if self.kind == "curve":
            return float(np.abs(one - other).mean())
        return float(np.abs(one - other).sum() / 2 if self.kind == "weights" else np.linalg.norm(one - other))

    def judge(self, guess: Numbers, truth: Numbers, mistakes: Mapping[str, Numbers]) -> str:
        """Return "x" if a guess is close to the truth, a mistake's name if it is twice as close to that, else " "."""
        (left, right), (low, high) = self._spans
        size = {"curve": high - low, "weights": 1.0, "star": float(np.hypot(right - left, high - low))}[self.kind]
        error = self.distance(guess, truth)
        if error <= _TOLERANCE[self.kind] * size:
            return "x"
        distances = {name: self.distance(guess, values) for name, values in mistakes.items()}
        closest = min(distances, key=lambda name: distances[name], default=" ")
        return closest if distances.get(closest, error) < error / 2 else " "


def fractions(values: Sequence[float], low: float, high: float) -> list[float]:
    """Return values as fractions of the range from low to high."""
    return [round((value - low) / (high - low), 4) for value in values]
