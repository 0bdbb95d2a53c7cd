"""A recording of a vision-language model that keeps what can be shown of its vision tower, and lets go of the rest."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from torch import Tensor

from viz_core.trace import Trace
from viz_core.trace.source import Projected, Source


class Spared(Trace):
    """Keeps all of the language model; of the vision tower the last frame, which is the whole picture, or nothing.

    A picture in 17 tiles of 1,024 patches leaves 100 MB of queries and keys in each layer of a small tower, many times
    what the language model leaves.

    Args:
        tower: whether the tower sees each frame by itself, so that its maps can be shown.
    """

    def __init__(self, differentiable: bool = False, values: bool = False, *, tower: bool = True) -> None:
        super().__init__(differentiable, values)
        self._tower = tower

    def add(self, source: Source, site: str | None) -> None:
        """Keep a call, as far as it is kept."""
        if site is not None and site.startswith("vision."):
            if not self._tower:
                return
            if isinstance(source, Projected) and source.shape[0] > 1:
                source = _last(source)
        super().add(source, site)


def _last(source: Projected) -> Projected:
    """The last row of a batch, as copies: a view would keep the whole batch."""
    batch = source.shape[0]
    named = ((field.name, getattr(source, field.name)) for field in fields(source))
    own: dict[str, Any] = {
        name: value[-1:].clone() for name, value in named if isinstance(value, Tensor) and value.shape[0] == batch
    }
    return replace(source, **own)
