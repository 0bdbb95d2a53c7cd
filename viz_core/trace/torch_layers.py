"""Which layer of plain PyTorch is at work: known by the weights that are used."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

from torch import Tensor, nn

from viz_core.trace.edits import Edits
from viz_core.trace.sites import find_sites

torch_edits: ContextVar[Edits | None] = ContextVar("torch_edits", default=None)
"""What is done to the call of torch's attention that is under way; a recorder keeps it with the call."""


class LayerFollower:
    """The site of the layer whose weights a thread has just used; None where that is none of the model's."""

    def __init__(self, model: nn.Module | None) -> None:
        self._weights = {} if model is None else _weights_of_layers(model)
        self._here = threading.local()

    @property
    def site(self) -> str | None:
        """Where this thread is."""
        found: str | None = getattr(self._here, "site", None)
        return found

    def follow(self, given: Iterable[Any]) -> None:
        """Whose weights are used now; nobody's, where they are those of no attention layer."""
        if self._weights:
            known = [self._weights[id(each)][1] for each in given if id(each) in self._weights]
            if known:
                self._here.site = next((site for site in known if site is not None), None)


def _weights_of_layers(model: nn.Module) -> dict[int, tuple[Tensor, str | None]]:
    """Every parameter of a model by its id, which is its own while it is kept here, and the site it belongs to."""
    found: dict[int, tuple[Tensor, str | None]] = {id(weight): (weight, None) for weight in model.parameters()}
    for layer, site in find_sites(model).items():
        found |= {id(weight): (weight, site) for weight in layer.parameters()}
    return found
