"""Models in other processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Concatenate

from serving.compute.cache import LRUCache
from serving.models.model_spec import ModelSpec, Progress
from serving.requests.request import PayloadMissingError, RunRequest, run_key
from serving.runners.picklable import check_picklable
from serving.runners.remote_maps import RemoteMaps
from serving.runners.remote_run import remote_run
from serving.runners.runner import Answer, Arguments, Model, Run
from viz_core.view.map_group import MapGroup

Execute = Callable[..., Any]
"""(name of a method of `ModelServer` or "outline", model or request, arguments) -> its result."""


class RemoteRunner:
    """A `Runner` of models in other processes. A picture or sound is sent only if the receiver does not have it.

    Args:
        execute: calls a method there.
        cache: of runs, without queries and keys.
    """

    def __init__(self, execute: Execute, cache: LRUCache) -> None:
        self._execute, self._cache = execute, cache

    def load(self, model: ModelSpec[Any], progress: Progress | None = None) -> None:  # noqa: ARG002  # not reported from there
        self._execute("load", model)

    def warm(self, request: RunRequest[Any, Any]) -> None:
        self._execute("warm", request)

    def evaluate_model(
        self,
        model: ModelSpec[Model],
        function: Callable[Concatenate[Model, Arguments], Answer],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        check_picklable(function)
        answer: Answer = self._execute("evaluate_model", model, function, *args, **kwargs)
        return answer

    def find(self, request: RunRequest[Model, Run]) -> Run | None:
        found: Run | None = self._cache.get(run_key(request), None)
        return found

    def run(self, request: RunRequest[Model, Run]) -> Run:
        found = self.find(request)
        if found is None:
            run: Run = remote_run(self._fetch("outline", request), partial(self._fetch, "rows", request))
            self._cache.put(run_key(request), run)
            return run
        return found

    def evaluate(
        self,
        request: RunRequest[Model, Run],
        function: Callable[Concatenate[Model, Run, Arguments], Answer],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        check_picklable(function)
        answer: Answer = self._fetch("evaluate", request, function, *args, **kwargs)
        return answer

    def groups(self, request: RunRequest[Any, Any], labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        groups = request.groups(self.run(request), labels)
        return tuple(replace(group, source=RemoteMaps(self._fetch, request, group.id)) for group in groups)

    def _fetch(self, method: str, request: RunRequest[Any, Any], *args: Any, **kwargs: Any) -> Any:
        try:
            return self._execute(method, request.without_payload, *args, **kwargs)
        except PayloadMissingError:
            return self._execute(method, request, *args, **kwargs)
