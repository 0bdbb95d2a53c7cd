"""What attention adds to a GRU when all else is alike, as it was measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from statistics import mean
from typing import Any, NamedTuple

from viz_core.pretrained.bootstrap import Difference
from viz_core.runtime.assets import ASSETS, reading

MEASURED = ASSETS / "book" / "alike.json"


class Scores(NamedTuple):
    """BLEU of both models on the same sentences, a number for each seed, and what attention adds with its interval."""

    sentences: int
    plain: tuple[float, ...]
    attention: tuple[float, ...]
    difference: Difference

    def spread(self, name: str) -> tuple[float, float, float]:
        """Mean, lowest and highest over the seeds of the model of this name, "plain" or "attention"."""
        runs: tuple[float, ...] = getattr(self, name)
        return mean(runs), min(runs), max(runs)

    @property
    def times(self) -> float:
        """How many times the plain model's score the one with attention has, means over the seeds."""
        return mean(self.attention) / mean(self.plain)


@dataclass(frozen=True)
class Alike:
    """Two models, as many updates, several seeds.

    Attributes:
        recipe: how they were built and trained.
        updates: steps of the optimiser, the same number in every run.
        parameters: numbers that each model learns, by its name.
        validation_loss: nats a token by model, a row for each seed, a number for each epoch.
        bins: scores by source tokens (from, to), as many sentences in each.
        balanced: over the sentences of all bins.
    """

    recipe: Mapping[str, Any]
    updates: int
    parameters: Mapping[str, int]
    validation_loss: Mapping[str, tuple[tuple[float, ...], ...]]
    bins: Mapping[tuple[int, int], Scores]
    balanced: Scores

    @property
    def last_gain(self) -> float:
        """The largest part of its validation loss that any run lost in its last epoch: how far from done they were."""
        rows = [row for rows in self.validation_loss.values() for row in rows]
        return max(1 - row[-1] / row[-2] for row in rows)

    def curve(self, name: str) -> list[dict[str, float]]:
        """A model's validation loss by epoch, mean over its seeds."""
        epochs = zip(*self.validation_loss[name], strict=True)
        return [{"epoch": epoch, "validation_loss": mean(each)} for epoch, each in enumerate(epochs, 1)]

    @property
    def grows(self) -> bool:
        """Whether attention adds more in every bin than in the one of shorter sentences before it."""
        return all(after > before for before, after in pairwise(each.difference.value for each in self.bins.values()))


@cache
def alike() -> Alike:
    """The recorded comparison."""
    with reading(MEASURED):
        found: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))
        return Alike(
            found["recipe"],
            found["updates"],
            found["parameters"],
            {name: tuple(map(tuple, rows)) for name, rows in found["validation_loss"].items()},
            {(each["from"], each["to"]): _scores(each) for each in found["bins"]},
            _scores(found["balanced"]),
        )


def _scores(found: Mapping[str, Any]) -> Scores:
    bleu = found["bleu"]
    return Scores(found["sentences"], tuple(bleu["plain"]), tuple(bleu["attention"]), Difference(*found["difference"]))
