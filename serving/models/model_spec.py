"""Which models there are to ask."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from viz_core.pretrained import ImageClassifier, Translator, load_classifier, load_translator
from viz_core.view.notebook_file import Recipe

Loaded_co = TypeVar("Loaded_co", covariant=True)
Progress = Callable[[int, int], None]
"""Gets the bytes that have come and those there are."""


class ModelSpec(ABC, Generic[Loaded_co]):
    """Which model: small and hashable. Whoever has it can load what it names, on any machine that has its files."""

    most_loaded: ClassVar[int] = 8
    """So many of its kind stay loaded."""

    @property
    def affinity(self) -> str:
        """What a pool remembers by, so that questions go where the model is loaded; "" where every machine has it."""
        return ""

    @abstractmethod
    def load(self, progress: Progress | None) -> Loaded_co:
        """The model itself.

        Raises:
            ValueError: if it cannot be had or run; the message is for a person.
        """

    def recipe(self) -> Recipe:
        """How a notebook loads it, as `model`."""
        raise NotImplementedError(f"{type(self).__name__} is nothing that a notebook loads")


@dataclass(frozen=True)
class ShippedModelSpec(ModelSpec[Loaded_co]):
    """A model that ships with the Atlas."""

    name: str

    def recipe(self) -> Recipe:
        return Recipe(f"from viz_core import load, view\n\nmodel = load({self.name!r})")


class ShippedTranslator(ShippedModelSpec[Translator]):
    """A translator that ships."""

    def load(self, progress: Progress | None) -> Translator:  # noqa: ARG002  # it is here already
        return load_translator(self.name)


class ShippedClassifier(ShippedModelSpec[ImageClassifier]):
    """A classifier of pictures that ships."""

    def load(self, progress: Progress | None) -> ImageClassifier:  # noqa: ARG002  # it is here already
        return load_classifier(self.name)


class ModelAdapter(ModelSpec[Loaded_co]):
    """Another model behind another face: it is loaded once, whatever faces it is asked by."""

    @property
    @abstractmethod
    def adapted(self) -> ModelSpec[Any]:
        """The model behind it."""

    @abstractmethod
    def adapt(self, loaded: Any) -> Loaded_co:
        """The face of the loaded model.

        Raises:
            ValueError: if the model has no such face; the message is for a person.
        """

    @property
    def affinity(self) -> str:
        return self.adapted.affinity

    def load(self, progress: Progress | None) -> Loaded_co:
        return self.adapt(self.adapted.load(progress))


@dataclass(frozen=True)
class NoModel(ModelSpec[None]):
    """No model, to ask a question about the machine that runs models."""

    def load(self, progress: Progress | None) -> None:
        """Nothing."""
