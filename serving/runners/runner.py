"""The interface through which pages run models: in this process, in workers, or on a pool of machines.

Requests are complete (model and input), so any machine can run any of them, also again after another one died. Queries
and keys stay beside the model, and so does the work on them: thumbnails, tiles, rollouts and measures. Functions that
are evaluated there are at the top level of a module. Only runners cache runs.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, Concatenate, ParamSpec, TypeVar

from serving.compute.cache import MISSING, LRUCache
from serving.requests.models import ModelSpec, Progress
from serving.requests.request import RunRequest, run_key
from viz_core.view.map_group import MapGroup

Model = TypeVar("Model")
Run = TypeVar("Run")
Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")


class Runner(ABC):
    """Runs models.

    Args:
        cache: of runs.
    """

    def __init__(self, cache: LRUCache) -> None:
        self._cache = cache

    @abstractmethod
    def load(self, model: ModelSpec[Any], progress: Progress | None = None) -> None:
        """Load a model, which may take long. The other methods load it as well.

        Raises:
            ValueError: if there is no such model, or it cannot be loaded or run; the message is for a person.
        """

    @abstractmethod
    def warm(self, request: RunRequest[Any, Any]) -> None:
        """Run a request in every process that may get it, so that later runs are faster.

        Raises:
            ValueError: if there is no such model, or it cannot take this input.
        """

    def find(self, request: RunRequest[Model, Run]) -> Run | None:
        """Return the cached run of a request, or None."""
        found: Run | None = self._cache.get(run_key(request), None)
        return found

    @abstractmethod
    def run(self, request: RunRequest[Model, Run]) -> Run:
        """Return the run of a request. A trace in another process fetches its weights when they are needed.

        Raises:
            ValueError: if there is no such model, or it cannot take this input; the message is for a person.
        """

    @abstractmethod
    def groups(self, request: RunRequest[Any, Any], labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        """Return the maps of a run, grouped for the attention view."""

    def evaluate_model(
        self,
        model: ModelSpec[Model],
        function: Callable[Concatenate[Model, Arguments], Answer],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        """Return function(model, *arguments), computed beside the model.

        Raises:
            ValueError: if the function cannot be sent to another process, such as a lambda.
        """
        check_picklable(function)
        answer: Answer = self._apply(model, function, *args, **kwargs)
        return answer

    def evaluate(
        self,
        request: RunRequest[Model, Run],
        function: Callable[Concatenate[Model, Run, Arguments], Answer],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        """Return function(model, run, *arguments), computed beside the model.

        Raises:
            ValueError: if the function cannot be sent to another process, such as a lambda.
        """
        check_picklable(function)
        answer: Answer = self._apply(request, function, *args, **kwargs)
        return answer

    @abstractmethod
    def _apply(self, subject: ModelSpec[Any] | RunRequest[Any, Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a function of a model, or of a model and its run, beside the model."""


def check_picklable(function: Callable[..., Any]) -> None:
    """Check that another process can import a function by its module and name.

    ValueError if it cannot, as for a lambda, a closure or a partial function.
    """
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    found: Any = None
    if isinstance(module, str) and isinstance(name, str) and module != "__main__":
        found = reduce(lambda place, part: getattr(place, part, None), name.split("."), sys.modules.get(module))
    if found is not function:
        raise ValueError(f"function: expected one at the top level of a module, got {name or function!r}")


class LocalRunner(Runner):
    """A `Runner` of models in this process.

    Args:
        load: returns the loaded model of a spec; takes a progress callback.
        cache: of runs.
    """

    def __init__(self, load: Callable[..., Any], cache: LRUCache) -> None:
        super().__init__(cache)
        self._load = load

    def load(self, model: ModelSpec[Any], progress: Progress | None = None) -> None:
        self._load(model, progress)

    def warm(self, request: RunRequest[Any, Any]) -> None:
        self.run(request)

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

    def groups(self, request: RunRequest[Any, Any], labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        return request.groups(self.run(request), labels)

    def _apply(self, subject: ModelSpec[Any] | RunRequest[Any, Any], /, *args: Any, **kwargs: Any) -> Any:
        function, *others = args
        if isinstance(subject, ModelSpec):
            return function(self._load(subject), *others, **kwargs)
        return function(self._load(subject.model), self.run(subject), *others, **kwargs)
