"""Runs in another process: sites and shapes are transferred, weights are fetched when they are needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from jaxtyping import Float
from torch import Tensor

from serving.requests.request import RunRequest
from viz_core.trace import Trace


@dataclass(frozen=True)
class Outline:
    """A run without queries, keys and other large fields."""

    run: Any
    sites: tuple[tuple[str, tuple[int, int, int, int]], ...]


def outline(request: RunRequest[Any, Any], run: Any) -> Outline:
    """Return the outline of a run."""
    shapes = tuple((call.site, call.source.shape) for call in run.trace)
    return Outline(replace(request.for_transfer(run), trace=Trace()), shapes)


@dataclass(frozen=True)
class RemoteRows:
    """Weights of a call whose queries and keys are in another process, fetched when they are needed."""

    shape: tuple[int, int, int, int]
    fetch: Callable[[slice, slice], Tensor]

    def tensors(self) -> list[Tensor]:
        return []

    def rows(self, heads: slice, queries: slice) -> Float[Tensor, "batch some_heads rows keys"]:
        return self.fetch(heads, queries)


def remote_run(received: Outline, fetch: Callable[[str, slice, slice], Tensor]) -> Any:
    """Return the run with a trace that fetches the weights of a site's heads and queries."""
    trace = Trace()
    for site, shape in received.sites:
        trace.add(RemoteRows(shape, partial(fetch, site)), site)
    return replace(received.run, trace=trace)
