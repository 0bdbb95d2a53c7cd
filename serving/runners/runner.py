"""One small way to ask a model, wherever it runs: in this process, or in a pool of machines.

Requests are pure and say all there is to say (which model, what it is given), so that any machine can answer any of
them, again if one has died, and one that has not seen the input yet works it out anew. Answers never hold a trace:
queries and keys stay beside the model, and so does the work on them: pictures, tiles, rollouts and measures.

A runner keeps what came of requests, and nobody else does. Questions are functions at the top level of a module, of
the chapter that asks them, or of the library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from serving.models.model_spec import ModelSpec, Progress
from serving.requests.request import Request
from viz_core.view.map_group import MapGroup

Model = TypeVar("Model")
Run = TypeVar("Run")
Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")


class Runner(Protocol):
    """Asks models."""

    def load(self, model: ModelSpec[Any], progress: Progress | None = None) -> None:
        """Have a model ready, which may take long; whatever else is asked loads it as well.

        Raises:
            ValueError: if there is no such model, or it cannot be had or run; the message is for a person.
        """
        ...

    def warm(self, request: Request[Any, Any]) -> None:
        """Run it wherever it may be run, so that nobody has to wait for what only a first run takes.

        Raises:
            ValueError: if there is no such model, or it cannot take this.
        """
        ...

    def ask_model(
        self,
        model: ModelSpec[Model],
        question: Callable[Concatenate[Model, Arguments], Answer],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        """question(model, *arguments): what there is to know of a model beside its runs.

        Raises:
            ValueError: if the question could not be asked on another machine, as a lambda.
        """
        ...

    def find(self, request: Request[Model, Run]) -> Run | None:
        """What came of this request where it is kept, at no cost; None where it must be run."""
        ...

    def run(self, request: Request[Model, Run]) -> Run:
        """What the model makes of it; the trace may lie elsewhere, and then gets weights from there when someone looks.

        Raises:
            ValueError: if there is no such model, or it cannot take this; the message is for a person.
        """
        ...

    def ask(
        self,
        request: Request[Model, Run],
        question: Callable[Concatenate[Model, Run, Arguments], Answer],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        """question(model, run, *arguments), worked out beside the model.

        Raises:
            ValueError: if the question could not be asked on another machine, as a lambda.
        """
        ...

    def groups(self, request: Request[Any, Any], labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        """The maps of a run as an attention view shows them."""
        ...
