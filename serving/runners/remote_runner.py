"""Models elsewhere, asked through a wire."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Concatenate

from serving.compute.cache import LRUCache
from serving.models.model_spec import ModelSpec, Progress
from serving.requests.request import PayloadMissingError, Request, run_key
from serving.runners.picklable import check_question
from serving.runners.remote_maps import RemoteMaps
from serving.runners.remote_run import remote_run
from serving.runners.runner import Answer, Arguments, Model, Run
from viz_core.view.map_group import MapGroup

Ask = Callable[..., Any]
"""(name of a method of `ModelServer` or "outline", model or request, arguments) -> its answer, from wherever it is."""


class RemoteRunner:
    """Asks models elsewhere, through `ask`. A picture goes along only where it is not known yet.

    Args:
        ask: the wire.
        cache: where runs are kept, without what lies elsewhere.
    """

    def __init__(self, ask: Ask, cache: LRUCache) -> None:
        self._ask, self._cache = ask, cache

    def load(self, model: ModelSpec[Any], progress: Progress | None = None) -> None:  # noqa: ARG002  # none comes from there
        self._ask("load", model)

    def warm(self, request: Request[Any, Any]) -> None:
        self._ask("warm", request)

    def ask_model(
        self,
        model: ModelSpec[Model],
        question: Callable[Concatenate[Model, Arguments], Answer],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        check_question(question)
        answer: Answer = self._ask("ask_model", model, question, *args, **kwargs)
        return answer

    def find(self, request: Request[Model, Run]) -> Run | None:
        found: Run | None = self._cache.get(run_key(request), None)
        return found

    def run(self, request: Request[Model, Run]) -> Run:
        found = self.find(request)
        if found is None:
            run: Run = remote_run(self._of("outline", request), partial(self._of, "rows", request))
            self._cache.put(run_key(request), run)
            return run
        return found

    def ask(
        self,
        request: Request[Model, Run],
        question: Callable[Concatenate[Model, Run, Arguments], Answer],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        check_question(question)
        answer: Answer = self._of("ask", request, question, *args, **kwargs)
        return answer

    def groups(self, request: Request[Any, Any], labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        groups = request.groups(self.run(request), labels)
        return tuple(replace(group, source=RemoteMaps(self._of, request, group.id)) for group in groups)

    def _of(self, question: str, request: Request[Any, Any], *args: Any, **kwargs: Any) -> Any:
        try:
            return self._ask(question, request.without_payload, *args, **kwargs)
        except PayloadMissingError:
            return self._ask(question, request, *args, **kwargs)
