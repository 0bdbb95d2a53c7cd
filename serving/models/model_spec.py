"""Specifications of models: small hashable values that can load what they name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
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

        Raises:
            ValueError: if the model cannot have it; the message is for a person.
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
