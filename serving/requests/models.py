"""Specifications of models, small hashable values that load what they name, and the registry of loaded models."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from viz_core.pretrained import ImageClassifier, Translator, load_classifier, load_translator
from viz_core.view.save import RunSource

Loaded_co = TypeVar("Loaded_co", covariant=True)
Progress = Callable[[int, int], None]
"""Called with the bytes loaded so far and in total."""


class ModelSpec(ABC, Generic[Loaded_co]):
    """Names a model. It is small and hashable, and loads the model on any machine that has its files."""

    max_loaded: ClassVar[int] = 8
    """Models of this kind that stay loaded."""

    @property
    def affinity(self) -> str:
        """Key by which a pool sends requests to the machine that has the model; "" if every machine has it."""
        return ""

    @abstractmethod
    def load(self, progress: Progress | None) -> Loaded_co:
        """Load the model.

        Raises:
            ValueError: if it cannot be loaded or run; the message is for a person.
        """

    def run_source(self) -> RunSource:
        """How a notebook loads it, as `model`."""
        raise NotImplementedError(f"{type(self).__name__} is nothing that a notebook loads")


@dataclass(frozen=True)
class ShippedModelSpec(ModelSpec[Loaded_co]):
    """A model that ships with the Atlas."""

    name: str

    def run_source(self) -> RunSource:
        return RunSource(f"from viz_core import load, view\n\nmodel = load({self.name!r})")


class ShippedTranslator(ShippedModelSpec[Translator]):
    """A translator that ships."""

    def load(self, progress: Progress | None) -> Translator:  # noqa: ARG002  # it is here already
        return load_translator(self.name)


class ShippedClassifier(ShippedModelSpec[ImageClassifier]):
    """A classifier of pictures that ships."""

    def load(self, progress: Progress | None) -> ImageClassifier:  # noqa: ARG002  # it is here already
        return load_classifier(self.name)


class ModelAdapter(ModelSpec[Loaded_co]):
    """Another model with another interface. The model is loaded once for all its interfaces."""

    @property
    @abstractmethod
    def adapted(self) -> ModelSpec[Any]:
        """The adapted model."""

    @abstractmethod
    def adapt(self, loaded: Any) -> Loaded_co:
        """Return the loaded model with this interface.

        ValueError if the model cannot have it; the message is for a person.
        """

    @property
    def affinity(self) -> str:
        return self.adapted.affinity

    def load(self, progress: Progress | None) -> Loaded_co:
        return self.adapt(self.adapted.load(progress))


@dataclass(frozen=True)
class NoModel(ModelSpec[None]):
    """No model, for functions of the machine that runs models."""

    def load(self, progress: Progress | None) -> None:
        """Nothing."""


Loaded = TypeVar("Loaded")


class ModelRegistry:
    """Loads each model once. Of each kind at most `max_loaded` stay; the least recently used are dropped."""

    def __init__(self) -> None:
        self._models: dict[ModelSpec[Any], Future[Any]] = {}  # the last used one last
        self._lock = threading.Lock()

    def __call__(self, model: ModelSpec[Loaded], progress: Progress | None = None) -> Loaded:
        """Return the loaded model. ValueError if it cannot be loaded or run; the next call tries again."""
        if isinstance(model, ModelAdapter):
            return model.adapt(self(model.adapted, progress))
        with self._lock:
            found = self._models.pop(model, None)
            loaded = self._models[model] = found or Future()
            same_kind = [other for other in self._models if type(other) is type(model)]
            for unused in same_kind[: -model.max_loaded]:
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

    def __contains__(self, model: ModelSpec[Any]) -> bool:
        """Return whether the model is loaded, or being loaded."""
        with self._lock:
            return model in self._models
