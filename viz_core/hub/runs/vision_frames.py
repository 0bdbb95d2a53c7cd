"""Recording of a vision-language model with only what can be shown of its vision tower."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, TypeAlias

from torch import Tensor

from viz_core.trace import Trace
from viz_core.trace.source import Projected, Source

CallSelector: TypeAlias = Callable[[Sequence[Source]], Source | None]
"""What is kept of the calls that a layer of a tower has made so far; None while its maps are not whole."""


class PartialRecording(Trace):
    """A trace with all calls of the language model, and of the vision tower those that `tower` selects.

    A picture in 17 tiles of 1,024 patches leaves 100 MB of queries and keys in each layer of a small tower, many times
    what the language model leaves.

    Args:
        tower: what is kept of a layer's calls; None for nothing.
    """

    def __init__(self, differentiable: bool = False, values: bool = False, *, tower: CallSelector | None) -> None:
        super().__init__(differentiable, values)
        self._tower = tower
        self._begun: dict[str, list[Source]] = {}

    def add(self, source: Source, site: str | None) -> None:
        """Add a call, or what is selected of it."""
        selected: Source | None = source
        if site is not None and site.startswith("vision."):
            if self._tower is None:
                return
            calls = [*self._begun.pop(site, ()), source]
            selected = self._tower(calls)
            if selected is None:
                self._begun[site] = calls
        if selected is not None:
            super().add(selected, site)


def one_frame(calls: Sequence[Source], which: int = -1) -> Source:
    """One picture of a batch, as copies: a view would keep the whole batch."""
    source = calls[-1]
    batch = source.shape[0]
    if batch == 1 or not isinstance(source, Projected):
        return source
    named = ((field.name, getattr(source, field.name)) for field in fields(source))
    own: dict[str, Any] = {
        name: value[which:][:1].clone()
        for name, value in named
        if isinstance(value, Tensor) and value.shape[0] == batch
    }
    return replace(source, **own)
