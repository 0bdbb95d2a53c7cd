"""Models in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Concatenate

from serving.compute.cache import MISSING, LRUCache
from serving.models.model_spec import ModelSpec, Progress
from serving.requests.request import RunRequest, run_key
from serving.runners.picklable import check_picklable
from serving.runners.runner import Answer, Arguments, Model, Run
from viz_core.view.map_group import MapGroup


class LocalRunner:
    """A `Runner` of models in this process.

    Args:
        load: returns the loaded model of a spec; takes a progress callback.
        cache: of runs.
    """

    def __init__(self, load: Callable[..., Any], cache: LRUCache) -> None:
        self._load, self._cache = load, cache

    def load(self, model: ModelSpec[Any], progress: Progress | None = None) -> None:
        self._load(model, progress)

    def warm(self, request: RunRequest[Any, Any]) -> None:
        self.run(request)

    def evaluate_model(
        self,
        model: ModelSpec[Model],
        function: Callable[Concatenate[Model, Arguments], Answer],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        check_picklable(function)
        return function(self._load(model), *args, **kwargs)

    def find(self, request: RunRequest[Model, Run]) -> Run | None:
        found: Run | None = self._cache.get(run_key(request), None)
        return found

    def run(self, request: RunRequest[Model, Run]) -> Run:
        found = self.run_all([request])[0]
        if isinstance(found, Exception):
            raise found
        return found

    def run_all(self, requests: list[RunRequest[Model, Run]]) -> list[Run | Exception]:
        """Return a run or an error for each request; requests to one model run together."""
        found: dict[RunRequest[Model, Run], Any] = {
            one.without_payload: self._cache.get(run_key(one)) for one in requests
        }
        missing = {one.without_payload: one for one in requests if found[one] is MISSING}
        for kind, model in {(type(one), one.model) for one in missing.values()}:
            batch = [one for one in missing.values() if (type(one), one.model) == (kind, model)]
            runs: list[Run | Exception]
            try:
                runs = kind.run_all(self._load(model), batch)
            except ValueError as error:  # no such model
                runs = [error] * len(batch)
            for one, run in zip(batch, runs, strict=True):
                if not isinstance(run, Exception):
                    self._cache.put(run_key(one), run)
                found[one] = run
        return [found[one] for one in requests]

    def evaluate(
        self,
        request: RunRequest[Model, Run],
        function: Callable[Concatenate[Model, Run, Arguments], Answer],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        check_picklable(function)
        return function(self._load(request.model), self.run(request), *args, **kwargs)

    def groups(self, request: RunRequest[Any, Any], labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        return request.groups(self.run(request), labels)
