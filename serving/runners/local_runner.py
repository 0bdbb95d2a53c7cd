"""Models in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Concatenate

from serving.compute.cache import MISSING, LRUCache
from serving.models.model_spec import ModelSpec, Progress
from serving.requests.request import Request, run_key
from serving.runners.picklable import check_question
from serving.runners.runner import Answer, Arguments, Model, Run
from viz_core.view.map_group import MapGroup


class LocalRunner:
    """Asks models in this process.

    Args:
        load: the loaded model of a spec; gets who wants to know how far it is, where somebody does.
        cache: where runs are kept.
    """

    def __init__(self, load: Callable[..., Any], cache: LRUCache) -> None:
        self._load, self._cache = load, cache

    def load(self, model: ModelSpec[Any], progress: Progress | None = None) -> None:
        self._load(model, progress)

    def warm(self, request: Request[Any, Any]) -> None:
        self.run(request)

    def ask_model(
        self,
        model: ModelSpec[Model],
        question: Callable[Concatenate[Model, Arguments], Answer],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        check_question(question)
        return question(self._load(model), *args, **kwargs)

    def find(self, request: Request[Model, Run]) -> Run | None:
        found: Run | None = self._cache.get(run_key(request), None)
        return found

    def run(self, request: Request[Model, Run]) -> Run:
        found = self.run_all([request])[0]
        if isinstance(found, Exception):
            raise found
        return found

    def run_all(self, requests: list[Request[Model, Run]]) -> list[Run | Exception]:
        """Several at once, those for one model together; where one cannot be had, what is wrong with it."""
        found: dict[Request[Model, Run], Any] = {one.without_payload: self._cache.get(run_key(one)) for one in requests}
        missing = {one.without_payload: one for one in requests if found[one] is MISSING}
        for kind, model in {(type(one), one.model) for one in missing.values()}:
            those = [one for one in missing.values() if (type(one), one.model) == (kind, model)]
            made: list[Run | Exception]
            try:
                made = kind.run_all(self._load(model), those)
            except ValueError as error:  # no such model
                made = [error] * len(those)
            for one, run in zip(those, made, strict=True):
                if not isinstance(run, Exception):
                    self._cache.put(run_key(one), run)
                found[one] = run
        return [found[one] for one in requests]

    def ask(
        self,
        request: Request[Model, Run],
        question: Callable[Concatenate[Model, Run, Arguments], Answer],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        check_question(question)
        return question(self._load(request.model), self.run(request), *args, **kwargs)

    def groups(self, request: Request[Any, Any], labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        return request.groups(self.run(request), labels)
