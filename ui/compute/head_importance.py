"""What each head of a shipped model is worth, as measured by `python -m recipes head-importance NAME`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from viz_core.pretrained.bootstrap import Difference
from viz_core.pretrained.card import ModelCard, parsing, read_bytes, read_card
from viz_core.runtime.assets import ASSETS

IMPORTANCE = "heads.json"


@dataclass(frozen=True)
class HeadWorth:
    """What the score does without a head, and with no other in its layer; None where that was not measured yet."""

    site: str
    head: int
    without: Difference | None
    alone: Difference | None
    gradient: float  # E_x |d L(x) / d xi_h| (Michel 2019, equation 2)

    @property
    def sure(self) -> bool:
        """Whether the interval of the score without it does not hold 0."""
        return self.without is not None and (self.without.low > 0 or self.without.high < 0)


@dataclass(frozen=True)
class HeadImportance:
    """The measurement of a model, over its whole test split."""

    metric: str  # "bleu" or "accuracy"
    base: float
    examples: int
    heads: tuple[HeadWorth, ...]


def head_importance(name: str, folder: Path | None = None) -> HeadImportance | None:
    """What the heads of a shipped model are worth; None where that was not measured.

    Raises:
        CheckpointError: if there is no such model, or the measurement cannot be read.
    """
    path = (folder or ASSETS / "checkpoints") / name
    return read_importance(path, read_card(path))


def gradient_agreement(measured: HeadImportance) -> float:
    """Spearman's rank correlation of what the score loses without a head and what its gradient says, -1 to 1."""
    both = [(-head.without.value, head.gradient) for head in measured.heads if head.without is not None]
    ranks = np.argsort(np.argsort(np.array(both), axis=0), axis=0)
    costs, gradients = ranks.T
    return float(np.atleast_2d(np.corrcoef(costs, gradients))[0, 1])


def read_importance(folder: Path, card: ModelCard) -> HeadImportance | None:
    """The measurement that lies beside a checkpoint; None where there is none, or one of other weights."""
    path = folder / IMPORTANCE
    if not path.is_file():
        return None
    with parsing(path):
        content = json.loads(read_bytes(path))
        if content["sha256"] != card.config.get("sha256"):
            return None
        heads = tuple(
            HeadWorth(h["site"], h["head"], _difference(h.get("without")), _difference(h.get("alone")), h["gradient"])
            for h in content["heads"]
        )
        return HeadImportance(content["metric"], content["base"], content["examples"], heads)


def _difference(numbers: list[float] | None) -> Difference | None:
    return None if numbers is None else Difference(*map(float, numbers))
