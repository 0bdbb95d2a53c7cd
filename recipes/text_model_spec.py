"""The specification of a model of English."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from recipes.text_loop import Loss, TextConfig


@dataclass(frozen=True)
class TextModelSpec:
    """Architecture and training configuration of a model of English.

    Attributes:
        title: of its card.
        description: first words of its card.
        architecture: its config without the size of the vocabulary.
        added: the modules whose output joins the residual stream.
        ends: whether a text is closed by an end token, so that two texts are told apart.
    """

    title: str
    description: str
    build: Callable[[dict[str, Any]], nn.Module]
    architecture: dict[str, Any]
    loss: Loss
    added: Callable[[Any], Sequence[nn.Module]]
    ends: bool
    config: TextConfig = field(default_factory=TextConfig)
