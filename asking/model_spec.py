"""Which models there are to ask, and those that are loaded."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from viz_core.lessons.multi_head.inputs import trained_input
from viz_core.pretrained import load_classifier, load_translator
from viz_core.pretrained.picture_model import PictureModel, picture_facts

Progress = Callable[[int, int], None]
"""Gets the bytes that have come and those there are."""


class Model(ABC):
    """Which model: small and hashable. Whoever has it can load what it names, on any machine that has its files."""

    answers: ClassVar[Mapping[str, Callable[..., Any]]] = {}
    """What can be asked of the loaded model beside a recorded run: (the model, arguments) -> an answer."""
    most_loaded: ClassVar[int] = 8
    """So many of its kind stay loaded."""

    @property
    def place(self) -> str:
        """What a pool remembers by, so that questions go where the model is loaded; "" where every machine has it."""
        return ""

    @abstractmethod
    def load(self, progress: Progress | None) -> Any:
        """The model itself.

        Raises:
            ValueError: if it cannot be had or run; the message is for a person.
        """

    def as_picture_model(self, loaded: Any) -> PictureModel:
        """The loaded model as the vision chapter asks it.

        Raises:
            ValueError: if it does not look at pictures.
        """
        model: PictureModel = loaded
        return model


@dataclass(frozen=True)
class Shipped(Model):
    """A model that ships with the Atlas."""

    name: str
    task: Literal["translation", "classification"] = "translation"
    answers = {  # noqa: RUF012
        "encoder-input": trained_input,
        "facts": picture_facts,
        "positions": lambda model, grid: model.position_table(grid),
    }

    def load(self, progress: Progress | None) -> Any:  # noqa: ARG002  # it is here already
        return (load_translator if self.task == "translation" else load_classifier)(self.name)


class Models:
    """Loaded models, each loaded once, by whoever asks first. The longest unused of a kind go where there are many."""

    def __init__(self) -> None:
        self._models: dict[Model, Future[Any]] = {}  # the last used one last
        self._lock = threading.Lock()

    def __call__(self, model: Model, progress: Progress | None = None) -> Any:
        """The model itself.

        Raises:
            ValueError: if it cannot be had or run; the next who asks tries again.
        """
        with self._lock:
            found = self._models.pop(model, None)
            loaded = self._models[model] = found or Future()
            alike = [other for other in self._models if type(other) is type(model)]
            for unused in alike[: -model.most_loaded]:
                del self._models[unused]
        if found is None:
            try:
                loaded.set_result(model.load(progress))
            except BaseException as error:
                with self._lock:
                    if self._models.get(model) is loaded:
                        del self._models[model]
                loaded.set_exception(error)
        return loaded.result()
