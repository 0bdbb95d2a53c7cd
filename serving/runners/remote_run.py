"""A run as it crosses to another machine: its trace by site and shape alone, its weights where someone looks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from jaxtyping import Float
from torch import Tensor

from serving.requests.request import Request
from viz_core.trace import Trace


@dataclass(frozen=True)
class Outline:
    """A run without queries and keys, and without what else is large."""

    run: Any
    sites: tuple[tuple[str, tuple[int, int, int, int]], ...]


def outline(request: Request[Any, Any], run: Any) -> Outline:
    """What crosses of a run."""
    shapes = tuple((call.site, call.source.shape) for call in run.trace)
    return Outline(replace(request.for_transfer(run), trace=Trace()), shapes)


@dataclass(frozen=True)
class RemoteRows:
    """The weights of a call whose queries and keys lie elsewhere: fetched where someone looks."""

    shape: tuple[int, int, int, int]
    fetch: Callable[[slice, slice], Tensor]

    def tensors(self) -> list[Tensor]:
        return []

    def rows(self, heads: slice, queries: slice) -> Float[Tensor, "batch some_heads rows keys"]:
        return self.fetch(heads, queries)


def remote_run(crossed: Outline, fetch: Callable[[str, slice, slice], Tensor]) -> Any:
    """The run again, with a trace that gets the weights of a site's heads and queries from there."""
    trace = Trace()
    for site, shape in crossed.sites:
        trace.add(RemoteRows(shape, partial(fetch, site)), site)
    return replace(crossed.run, trace=trace)
