"""Which layer of plain PyTorch is at work: known by the weights that are used."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

from torch import Tensor, nn

from viz_core.trace.edits import Edits
from viz_core.trace.sites import find_sites
from viz_core.trace.softmax_calls import possible_head_counts, spans_all_keys

edits_of_call: ContextVar[Edits | None] = ContextVar("edits_of_call", default=None)
"""What is done to the call of torch's attention that is under way; a recorder keeps it with the call."""


class TrackedLayer:
    """A layer at work: its site, how many heads it may have, and whether its softmax weighs all keys at once."""

    def __init__(self, site: str | None = None, layer: nn.Module | None = None) -> None:
        self.site = site
        self.heads = frozenset[int]() if layer is None else possible_head_counts(layer)
        self.whole = layer is not None and spans_all_keys(layer)

    @property
    def layer(self) -> TrackedLayer:
        """Itself: who listens to one layer alone knows where it is."""
        return self

    def follow(self, given: Iterable[Any]) -> None:
        """Nobody else's weights count."""


class LayerTracker:
    """The layer whose weights a thread has just used; one without a site where that is none of the model's."""

    def __init__(self, model: nn.Module | None) -> None:
        self._weights = {} if model is None else _weights_of_layers(model)
        self._here = threading.local()

    @property
    def layer(self) -> TrackedLayer:
        """Where this thread is."""
        found: TrackedLayer = getattr(self._here, "layer", _NOWHERE)
        return found

    def follow(self, given: Iterable[Any]) -> None:
        """Whose weights are used now; nobody's, where they are those of no attention layer."""
        if self._weights:
            known = [self._weights[id(each)][1] for each in given if id(each) in self._weights]
            if known:
                self._here.layer = next((layer for layer in known if layer is not _NOWHERE), _NOWHERE)


_NOWHERE = TrackedLayer()


def _weights_of_layers(model: nn.Module) -> dict[int, tuple[Tensor, TrackedLayer]]:
    """Every parameter of a model by its id, which is its own while it is kept here, and the layer it belongs to."""
    found: dict[int, tuple[Tensor, TrackedLayer]] = {id(weight): (weight, _NOWHERE) for weight in model.parameters()}
    for module, site in find_sites(model).items():
        layer = TrackedLayer(site, module)
        found |= {id(weight): (weight, layer) for weight in module.parameters()}
    return found
