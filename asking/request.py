"""What a model can be asked to run on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Self, TypeVar

from PIL import Image

from asking.model_spec import Model
from viz_core.view.map_group import MapGroup

Run = TypeVar("Run")


class PictureMissingError(Exception):
    """The request does not carry its picture, and whoever shall answer it does not know the picture yet."""


@dataclass(frozen=True)
class Picture:
    """A picture as it was brought. Its digest tells it from others, and stands for it where it is known already."""

    digest: str
    image: Image.Image | None = field(compare=False, repr=False)

    @property
    def light(self) -> Picture:
        """The picture by its digest alone."""
        return Picture(self.digest, None)

    def open(self) -> Image.Image:
        """The picture itself.

        Raises:
            PictureMissingError: if only its digest is here.
        """
        if self.image is None:
            raise PictureMissingError(self.digest)
        return self.image


class Request(ABC, Generic[Run]):
    """A model and what it is given: hashable, and all there is to say. What comes of it is a dataclass with a trace."""

    model: Model
    looks: ClassVar[Mapping[str, Callable[..., Any]]] = {}
    """What can be asked about a run beside its outcome and maps: (model, run, arguments) -> a small answer."""
    in_batches: ClassVar[bool] = False
    """Whether several run faster together, as short ones do."""

    @property
    def light(self) -> Self:
        """The same request without what is large, which stands for it where it is known already."""
        return self

    @abstractmethod
    def run(self, loaded: Any) -> Run:
        """Ask the loaded model.

        Raises:
            ValueError: if the model cannot take this; the message is for a person.
            PictureMissingError: if it is about a picture that is not here.
        """

    @classmethod
    def run_all(cls, loaded: Any, requests: Sequence[Self]) -> list[Run | Exception]:
        """Several, of which none spoils the others."""
        found: list[Run | Exception] = []
        for one in requests:
            try:
                found.append(one.run(loaded))
            except (ValueError, PictureMissingError) as error:
                found.append(error)
        return found

    @abstractmethod
    def groups(self, run: Run, labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        """The maps of a run as an attention view shows them."""

    def look(self, question: str, loaded: Any, run: Run, *arguments: Any) -> Any:
        """The answer to one of `looks`."""
        return self.looks[question](loaded, run, *arguments)

    def without_bulk(self, run: Run) -> Run:
        """The run as it can cross to another machine: without what is large beside its trace."""
        return run
