"""Results of the book's exercises on its GRU with attention, recorded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from statistics import mean
from typing import Any

from viz_core.runtime.assets import ASSETS, reading

MEASURED = ASSETS / "book" / "bahdanau-variants.json"


@dataclass(frozen=True)
class Variant:
    """One way to build the model, trained once from each seed.

    Attributes:
        parameters: numbers it learns.
        train_loss, validation_loss: nats a token, a row for each seed, a number for each epoch.
    """

    parameters: int
    train_loss: tuple[tuple[float, ...], ...]
    validation_loss: tuple[tuple[float, ...], ...]

    def epochs_until(self, loss: float) -> list[int]:
        """With each seed, the first epoch whose training loss is below this; one more than there are where none is."""
        return [next((e for e, each in enumerate(row, 1) if each < loss), len(row) + 1) for row in self.train_loss]

    def best_validation(self) -> list[float]:
        """With each seed, the lowest validation loss of any epoch."""
        return [min(row) for row in self.validation_loss]

    def curve(self) -> list[dict[str, float]]:
        """The training loss by epoch, mean over the seeds."""
        epochs = zip(*self.train_loss, strict=True)
        return [{"epoch": epoch, "train_loss": mean(each)} for epoch, each in enumerate(epochs, 1)]


@cache
def variants() -> Mapping[str, Variant]:
    """The model as printed, with LSTMs, and with the scaled dot product."""
    with reading(MEASURED):
        found: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))["variants"]
        return {
            name: Variant(
                each["parameters"],
                tuple(map(tuple, each["train_loss"])),
                tuple(map(tuple, each["validation_loss"])),
            )
            for name, each in found.items()
        }
