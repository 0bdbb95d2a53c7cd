"""How much each of several models was trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


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
