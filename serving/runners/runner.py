"""The interface through which pages run models: in this process, in workers, or on a pool of machines.

Requests are complete (model and input), so any machine can run any of them, also again after another one died. Queries
and keys stay beside the model, and so does the work on them: thumbnails, tiles, rollouts and measures. Functions that
are evaluated there are at the top level of a module. Only runners cache runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from serving.models.model_spec import ModelSpec, Progress
from serving.requests.request import RunRequest
from viz_core.view.map_group import MapGroup

Model = TypeVar("Model")
Run = TypeVar("Run")
Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")


class Runner(Protocol):
    """Runs models."""

    def load(self, model: ModelSpec[Any], progress: Progress | None = None) -> None:
        """Load a model, which may take long. The other methods load it as well.

        Raises:
            ValueError: if there is no such model, or it cannot be loaded or run; the message is for a person.
        """
        ...

    def warm(self, request: RunRequest[Any, Any]) -> None:
        """Run a request in every process that may get it, so that later runs are faster.

        Raises:
            ValueError: if there is no such model, or it cannot take this input.
        """
        ...

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
        ...

    def find(self, request: RunRequest[Model, Run]) -> Run | None:
        """Return the cached run of a request, or None."""
        ...

    def run(self, request: RunRequest[Model, Run]) -> Run:
        """Return the run of a request. A trace in another process fetches its weights when they are needed.

        Raises:
            ValueError: if there is no such model, or it cannot take this input; the message is for a person.
        """
        ...

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
        ...

    def groups(self, request: RunRequest[Any, Any], labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        """Return the maps of a run, grouped for the attention view."""
        ...
