"""What a model can be asked to run on."""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, ClassVar, Generic, Self, TypeVar

from PIL import Image

from serving.models.model_spec import ModelSpec
from viz_core.images.open_image import as_rgb
from viz_core.trace import HeadsOff
from viz_core.view.map_group import MapGroup
from viz_core.view.notebook_file import Recipe

Model = TypeVar("Model")
Run = TypeVar("Run")

MOST_CARRIED = 256 * 1024
"""A notebook carries pictures and sounds whose files have at most so many bytes."""


class PayloadMissingError(Exception):
    """The request does not carry its picture or sound, and whoever shall answer it does not know that yet."""


@dataclass(frozen=True)
class Picture:
    """A picture as it was brought. Its digest tells it from others, and stands for it where it is known already."""

    digest: str
    image: Image.Image | None = field(compare=False, repr=False)

    @property
    def without_payload(self) -> Picture:
        """The picture by its digest alone: equal to it, and small."""
        return Picture(self.digest, None)

    def open(self) -> Image.Image:
        """The picture itself.

        Raises:
            PayloadMissingError: if only its digest is here.
        """
        if self.image is None:
            raise PayloadMissingError(self.digest)
        return self.image

    def recipe(self) -> Recipe:
        """How a notebook opens it, as `image`: from the notebook itself where it is small enough.

        Raises:
            PayloadMissingError: if only its digest is here.
        """
        file = BytesIO()
        as_rgb(self.open()).save(file, "PNG")
        if file.tell() > MOST_CARRIED:
            return Recipe("from PIL import Image\n\nimage = Image.open('picture.png')", ("picture",))
        written = base64.b64encode(file.getvalue()).decode("ascii")
        imports = "import io\nfrom base64 import b64decode\n\nfrom PIL import Image\n\n"
        return Recipe(f"{imports}image = Image.open(io.BytesIO(b64decode('{written}')))")


class Request(ABC, Generic[Model, Run]):
    """A model and what it is given: hashable, and all there is to say. What comes of it is a dataclass with a trace."""

    model: ModelSpec[Model]
    in_batches: ClassVar[bool] = False
    """Whether several run faster together, as short ones do."""

    @property
    def without_payload(self) -> Self:
        """The request without what is large: equal to it, it stands for it in caches and where it is known already."""
        return self

    @abstractmethod
    def run(self, model: Model) -> Run:
        """Ask the loaded model.

        Raises:
            ValueError: if the model cannot take this; the message is for a person.
            PayloadMissingError: if it is about a picture or a sound that is not here.
        """

    @classmethod
    def run_all(cls, model: Model, requests: Sequence[Self]) -> list[Run | Exception]:
        """Several, of which none spoils the others."""
        found: list[Run | Exception] = []
        for one in requests:
            try:
                found.append(one.run(model))
            except (ValueError, PayloadMissingError) as error:
                found.append(error)
        return found

    @abstractmethod
    def groups(self, run: Run, labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        """The maps of a run as an attention view shows them."""

    def for_transfer(self, run: Run) -> Run:
        """The run as it can cross to another machine: without what is large beside its trace."""
        return run


def run_key(request: Request[Any, Any]) -> tuple[str, Request[Any, Any]]:
    """Under which the run of a request is kept."""
    return ("run", request.without_payload)


def without(off: HeadsOff, call: str) -> str:
    """A line of a notebook, with these heads off."""
    if not off:
        return call
    sites = {site: [str(head) for other, head in off if other == site] for site, _ in off}
    edits = ", ".join(f"{site!r}: off({', '.join(heads)})" for site, heads in sites.items())
    return f"from viz_core.trace import intervene, off\n\nwith intervene({{{edits}}}):\n    {call}"
