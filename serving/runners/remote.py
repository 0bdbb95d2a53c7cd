"""Models in other processes: the runner that sends requests there, and the server that runs them beside the models."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from jaxtyping import Float
from torch import Tensor

from serving.compute.cache import MISSING, LRUCache
from serving.requests.models import ModelSpec, Progress
from serving.requests.request import PayloadMissingError, RunRequest, run_key
from serving.runners.runner import LocalRunner, Model, Run, Runner
from viz_core.trace import Trace
from viz_core.view.map_group import MapGroup
from viz_core.view.requests import Found, WeightsRequest


@dataclass(frozen=True)
class Outline:
    """A run without queries, keys and other large fields."""

    run: Any
    sites: tuple[tuple[str, tuple[int, int, int, int]], ...]


def outline(request: RunRequest[Any, Any], run: Any) -> Outline:
    """Return the outline of a run."""
    shapes = tuple((call.site, call.source.shape) for call in run.trace)
    trace = Trace()
    trace.verification = run.trace.verification
    return Outline(replace(request.for_transfer(run), trace=trace), shapes)


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
    trace.verification = received.run.trace.verification
    for site, shape in received.sites:
        trace.add(RemoteRows(shape, partial(fetch, site)), site)
    return replace(received.run, trace=trace)


@dataclass(frozen=True)
class RemoteMaps:
    """The `MapSource` of a group whose queries and keys are in another process."""

    execute: Callable[..., Any]
    request: RunRequest[Any, Any]
    group: str

    def parts(self, requests: Sequence[WeightsRequest]) -> list[Found]:
        parts: list[Found] = self.execute("parts", self.request, self.group, requests)
        return parts


class MapServer(LocalRunner):
    """Serves `RemoteMaps`."""

    def parts(self, request: RunRequest[Any, Any], group: str, parts: Sequence[WeightsRequest]) -> list[Found]:
        """Return parts of a group's maps: thumbnails, whole maps, tiles, or rows of a token."""
        return self._groups(request)[group].maps.parts(parts)

    def _groups(self, request: RunRequest[Any, Any]) -> dict[str, MapGroup]:
        key = ("maps", request.without_payload)
        found = self._cache.get(key)
        if found is MISSING:
            found = {
                group.id: group for group in self.groups(request, defaultdict(str))
            }  # labels are added by the view
            self._cache.put(key, found)
        groups: dict[str, MapGroup] = found
        return groups


class ModelServer(MapServer):
    """Runs models in this process for a `RemoteRunner`, to which it returns runs without their traces."""

    methods = ("load", "warm", "evaluate_model", "evaluate", "parts", "rows")
    """Methods that can be called by name; outlines are batched instead."""

    def outlines(self, requests: list[RunRequest[Any, Any]]) -> list[Outline | Exception]:
        """Return runs without their traces, or errors."""
        runs = zip(requests, self.run_all(requests), strict=True)
        return [run if isinstance(run, Exception) else outline(one, run) for one, run in runs]

    def rows(
        self, request: RunRequest[Any, Any], site: str, heads: slice, queries: slice
    ) -> Float[Tensor, "batch some_heads rows keys"]:
        """Return exact weights of some heads and queries."""
        return self.run(request).trace[site].source.rows(heads, queries).cpu()


Execute = Callable[..., Any]
"""(name of a method of `ModelServer` or "outline", model or request, arguments) -> its result."""


class RemoteRunner(Runner):
    """A `Runner` of models in other processes. A picture or sound is sent only if the receiver does not have it.

    Args:
        execute: calls a method there.
        cache: of runs, without queries and keys.
    """

    def __init__(self, execute: Execute, cache: LRUCache) -> None:
        super().__init__(cache)
        self._execute = execute

    def load(self, model: ModelSpec[Any], progress: Progress | None = None) -> None:  # noqa: ARG002  # not reported from there
        self._execute("load", model)

    def warm(self, request: RunRequest[Any, Any]) -> None:
        self._execute("warm", request)

    def run(self, request: RunRequest[Model, Run]) -> Run:
        found = self.find(request)
        if found is None:
            run: Run = remote_run(self._fetch("outline", request), partial(self._fetch, "rows", request))
            self._cache.put(run_key(request), run)
            return run
        return found

    def groups(self, request: RunRequest[Any, Any], labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        groups = request.groups(self.run(request), labels)
        return tuple(replace(group, source=RemoteMaps(self._fetch, request, group.id)) for group in groups)

    def _apply(self, subject: ModelSpec[Any] | RunRequest[Any, Any], /, *args: Any, **kwargs: Any) -> Any:
        if isinstance(subject, ModelSpec):
            return self._execute("evaluate_model", subject, *args, **kwargs)
        return self._fetch("evaluate", subject, *args, **kwargs)

    def _fetch(self, method: str, request: RunRequest[Any, Any], *args: Any, **kwargs: Any) -> Any:
        try:
            return self._execute(method, request.without_payload, *args, **kwargs)
        except PayloadMissingError:
            return self._execute(method, request, *args, **kwargs)
