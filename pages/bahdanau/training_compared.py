"""How much each of several models was trained, and what two of them had reached after equally many epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Curve = Sequence[Mapping[str, float]]  # {epoch, validation_bleu, ...}, in the order of training


@dataclass(frozen=True)
class Trained:
    """What a training.json says of how far a model was trained."""

    epochs: float
    updates: int
    batch_tokens: int
    muon: bool  # whether Muon stepped the matrices, and AdamW the rest; else AdamW all

    @classmethod
    def read(cls, training: Mapping[str, Any]) -> Trained:
        """From what the training script wrote."""
        recipe = training["recipe"]
        return cls(
            training["curve"][-1]["epoch"],
            training["updates"],
            recipe["batch_tokens"],
            recipe["muon_lr"] is not None,
        )


@dataclass(frozen=True)
class Met:
    """Two curves at the last epoch that both have."""

    epoch: float
    bleu: tuple[float, float]
    done: tuple[float, float]  # the part of each one's own training that was over by then, 0 to 1


def meet(curve: Curve, other: Curve) -> Met | None:
    """Both models at the last epoch that stands in both curves; None if there is none."""
    shared = {point["epoch"] for point in curve} & {point["epoch"] for point in other}
    if not shared:
        return None
    last = max(shared)
    bleus = [next(point["validation_bleu"] for point in each if point["epoch"] == last) for each in (curve, other)]
    first, second = (last / each[-1]["epoch"] for each in (curve, other))
    return Met(last, (bleus[0], bleus[1]), (first, second))
