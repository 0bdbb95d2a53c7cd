"""Values in the plane with their weights, and those that the page opens with."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

FIRST_ROWS = (("0.5", "2", "0.2"), ("2.4", "2.4", "0.4"), ("3", "0.6", "0.3"), ("2", "1.6", "0.1"))


@dataclass(frozen=True, eq=False)
class Mixture:
    """Values in the plane, the weights as typed, and the weights after the case's constraint."""

    points: Tensor
    typed: Tensor
    weights: Tensor
    case: str

    @property
    def output(self) -> Tensor:
        return self.weights @ self.points
