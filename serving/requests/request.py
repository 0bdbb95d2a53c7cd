"""Requests: a model with its input, as hashable values."""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, ClassVar, Generic, Self, TypeVar

from PIL import Image

from serving.decoding.pictures import decode_picture
from serving.models.model_spec import ModelSpec
from viz_core.images.open_image import as_rgb
from viz_core.trace import HeadsOff
from viz_core.view.map_group import MapGroup
from viz_core.view.notebook_file import RunSource

Model = TypeVar("Model")
Run = TypeVar("Run")

MOST_CARRIED = 256 * 1024
"""Maximum bytes of a picture's or sound's file that is embedded in a notebook."""


class PayloadMissingError(Exception):
    """The request was sent without its picture or sound, and the receiver does not have it in its cache."""


@dataclass(frozen=True)
class Picture:
    """A picture, identified by its digest: an image, or a visitor's file that only a limited process decodes."""

    digest: str
    content: Image.Image | bytes | None = field(compare=False, repr=False)

    @property
    def without_payload(self) -> Picture:
        """The digest alone, which is equal to the picture."""
        return Picture(self.digest, None)

    def open(self) -> Image.Image:
        """Return the image.

        Raises:
            PayloadMissingError: if only its digest is here.
            PictureError: if the file cannot be decoded.
        """
        if self.content is None:
            raise PayloadMissingError(self.digest)
        return decode_picture(self.content) if isinstance(self.content, bytes) else self.content

    def run_source(self) -> RunSource:
        """Return code that opens the picture as `image`; small pictures are embedded in the code.

        Raises:
            PayloadMissingError: if only its digest is here.
        """
        opening = "from viz_core.images.open_image import open_picture\n\n"
        file = self._file()
        if len(file) > MOST_CARRIED:
            read = "from pathlib import Path\n\n" + opening + "image = open_picture(Path('picture.png').read_bytes())"
            return RunSource(read, ("picture",))
        written = base64.b64encode(file).decode("ascii")
        return RunSource(f"from base64 import b64decode\n\n{opening}image = open_picture(b64decode('{written}'))")

    def _file(self) -> bytes:
        if isinstance(self.content, bytes):
            return self.content
        file = BytesIO()
        as_rgb(self.open()).save(file, "PNG")
        return file.getvalue()


class Request(ABC, Generic[Model, Run]):
    """A model and its input: complete and hashable. Its run is a dataclass with a trace."""

    model: ModelSpec[Model]
    in_batches: ClassVar[bool] = False
    """Whether several requests run faster in one batch."""

    @property
    def without_payload(self) -> Self:
        """The request without its picture or sound: an equal and small key."""
        return self

    @abstractmethod
    def run(self, model: Model) -> Run:
        """Run the loaded model.

        Raises:
            ValueError: if the model cannot take this input; the message is for a person.
            PayloadMissingError: if the request was sent without its picture or sound.
        """

    @classmethod
    def run_all(cls, model: Model, requests: Sequence[Self]) -> list[Run | Exception]:
        """Return a run or an error for each request."""
        found: list[Run | Exception] = []
        for one in requests:
            try:
                found.append(one.run(model))
            except (ValueError, PayloadMissingError) as error:
                found.append(error)
        return found

    @abstractmethod
    def groups(self, run: Run, labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        """Return the maps of a run, grouped for the attention view."""

    def for_transfer(self, run: Run) -> Run:
        """Return the run without large fields, for transfer to another process."""
        return run


def run_key(request: Request[Any, Any]) -> tuple[str, Request[Any, Any]]:
    """Return the cache key of a request's run."""
    return ("run", request.without_payload)


def with_heads_off(off: HeadsOff, call: str) -> str:
    """Return a line of code that runs with these heads switched off."""
    if not off:
        return call
    sites = {site: [str(head) for other, head in off if other == site] for site, _ in off}
    edits = ", ".join(f"{site!r}: off({', '.join(heads)})" for site, heads in sites.items())
    return f"from viz_core.trace import intervene, off\n\nwith intervene({{{edits}}}):\n    {call}"
