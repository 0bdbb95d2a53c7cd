"""What each head of a shipped model is worth, as measured by `python -m viz_core.training head-importance NAME`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from torch import Tensor

from viz_core.pretrained.bootstrap import Difference
from viz_core.pretrained.card import CheckpointError, ModelCard, read_bytes, read_card
from viz_core.runtime.assets import ASSETS

IMPORTANCE, MEANS = "heads.json", "head_means.safetensors"


@dataclass(frozen=True)
class HeadWorth:
    """What the score does without a head, and with no other in its layer; None where that was not measured yet."""

    site: str
    head: int
    without: Difference | None
    alone: Difference | None
    gradient: float  # E_x |d L(x) / d xi_h| (Michel 2019, equation 2)


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


def head_means(name: str, folder: Path | None = None) -> dict[str, Float[Tensor, "heads v"]]:
    """What each head of each site of a shipped model writes on average: for `viz_core.trace.mean`.

    Raises:
        CheckpointError: if they were not measured.
    """
    return read_means((folder or ASSETS / "checkpoints") / name)


def read_importance(folder: Path, card: ModelCard) -> HeadImportance | None:
    """The measurement that lies beside a checkpoint; None where there is none, or one of other weights.

    Raises:
        CheckpointError: if it cannot be read.
    """
    path = folder / IMPORTANCE
    if not path.is_file():
        return None
    try:
        content = json.loads(read_bytes(path))
        if content["sha256"] != card.config.get("sha256"):
            return None
        heads = tuple(
            HeadWorth(h["site"], h["head"], _difference(h.get("without")), _difference(h.get("alone")), h["gradient"])
            for h in content["heads"]
        )
        return HeadImportance(content["metric"], content["base"], content["examples"], heads)
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path.name} of model {folder.name!r} cannot be read: {error!r}") from None


def read_means(folder: Path) -> dict[str, Float[Tensor, "heads v"]]:
    """What each head of each site writes on average over the reference set: for `viz_core.trace.mean`.

    Raises:
        CheckpointError: if there is no such file, or it cannot be read.
    """
    try:
        return load_tensors(read_bytes(folder / MEANS))
    except SafetensorError as error:
        raise CheckpointError(f"{MEANS} of model {folder.name!r} cannot be read: {error}") from None


def _difference(numbers: list[float] | None) -> Difference | None:
    return None if numbers is None else Difference(*map(float, numbers))
