"""Requests: a model with its input, as hashable values; pictures, videos and sounds by their digests."""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any, ClassVar, Generic, Self, TypeVar

from PIL import Image

from serving.decoding.files import decode_picture, decode_video
from serving.requests.models import ModelSpec
from viz_core.images.open_image import as_rgb
from viz_core.images.video import Video
from viz_core.maps.contributions import contribution_lengths, contribution_shares
from viz_core.sounds.sound import Sound
from viz_core.trace import HeadsOff, recording_values
from viz_core.view.map_group import MapGroup
from viz_core.view.save import RunSource

Model = TypeVar("Model")
Run = TypeVar("Run")

MAX_CARRIED = 256 * 1024
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
        if len(file) > MAX_CARRIED:
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


class RunRequest(ABC, Generic[Model, Run]):
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


def run_key(request: RunRequest[Any, Any]) -> tuple[str, RunRequest[Any, Any]]:
    """Return the cache key of a request's run."""
    return ("run", request.without_payload)


def with_heads_off(off: HeadsOff, call: str) -> str:
    """Return a line of code that runs with these heads switched off."""
    if not off:
        return call
    sites = {site: [str(head) for other, head in off if other == site] for site, _ in off}
    edits = ", ".join(f"{site!r}: off({', '.join(heads)})" for site, heads in sites.items())
    return f"from viz_core.trace import intervene, off\n\nwith intervene({{{edits}}}):\n    {call}"


TONES = "sample tones"
"""The digest of the drawn sound."""


@dataclass(frozen=True)
class SoundInput:
    """A sound, identified by its digest."""

    digest: str
    sound: Sound | None = field(compare=False, repr=False)

    @property
    def without_payload(self) -> SoundInput:
        """The digest alone, which is equal to the sound."""
        return SoundInput(self.digest, None)

    def open(self) -> Sound:
        """Return the sound.

        Raises:
            PayloadMissingError: if only its digest is here.
        """
        if self.sound is None:
            raise PayloadMissingError(self.digest)
        return self.sound

    def run_source(self) -> RunSource:
        """Return code that opens the sound as `sound`; short sounds are embedded in the code.

        Raises:
            PayloadMissingError: if only its digest is here.
        """
        if self.digest == TONES:
            return RunSource("from viz_core.sounds.sound import tone_sequence\n\nsound = tone_sequence()")
        opening = "from viz_core.sounds.open_sound import open_sound\n\n"
        file = self.open().wav()
        if len(file) > MAX_CARRIED:
            read = "from pathlib import Path\n\n" + opening + "sound = open_sound(Path('sound.wav').read_bytes())"
            return RunSource(read, ("sound",))
        written = base64.b64encode(file).decode("ascii")
        return RunSource(f"from base64 import b64decode\n\n{opening}sound = open_sound(b64decode('{written}'))")


@dataclass(frozen=True)
class VideoInput:
    """A video, identified by its digest: an animation, or several pictures as frames."""

    digest: str
    files: tuple[bytes, ...] | None = field(compare=False, repr=False)

    @property
    def without_payload(self) -> VideoInput:
        """The digest alone, which is equal to the video."""
        return VideoInput(self.digest, None)

    def open(self) -> Video:
        """Return the video.

        Raises:
            PayloadMissingError: if only its digest is here.
            PictureError: if it cannot be decoded.
        """
        return decode_video(self._files())

    def run_source(self) -> RunSource:
        """Return code that opens the video as `video`; short ones are embedded in the code.

        Raises:
            PayloadMissingError: if only its digest is here.
        """
        opening, files = "from viz_core.images.video import open_video\n\n", self._files()
        if sum(map(len, files)) > MAX_CARRIED:
            opening = "from pathlib import Path\n\nfrom viz_core.images.video import open_video, order_of_names\n\n"
            read = (
                "paths = sorted(Path('video').iterdir(), key=lambda path: order_of_names(path.name))\n"
                "video = open_video([path.read_bytes() for path in paths])"
            )
            return RunSource(f"{opening}{read}", ("video",))
        written = ", ".join(f"b64decode('{base64.b64encode(file).decode('ascii')}')" for file in files)
        return RunSource(f"from base64 import b64decode\n\n{opening}video = open_video([{written}])")

    def _files(self) -> tuple[bytes, ...]:
        if self.files is None:
            raise PayloadMissingError(self.digest)
        return self.files


@dataclass(frozen=True)
class ContributionRequest(RunRequest[Any, Any]):
    """A request whose run has contribution shares, or lengths on one scale, in place of attention weights."""

    base: RunRequest[Any, Any]
    lengths: bool = False

    @property
    def model(self) -> ModelSpec[Any]:  # type: ignore[override]
        """The model of the base request."""
        return self.base.model

    @property
    def without_payload(self) -> ContributionRequest:
        return ContributionRequest(self.base.without_payload, self.lengths)

    def run(self, model: Any) -> Any:
        """Run the base request with recorded values.

        Raises:
            ValueError: also if a layer's output projection is not found.
        """
        with recording_values():
            run = self.base.run(model)
        found = contribution_lengths if self.lengths else contribution_shares
        return replace(run, trace=found(run.trace, model.network))

    def groups(self, run: Any, labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        groups = self.base.groups(run, labels)
        return tuple(replace(group, rows_sum_to_one=False) for group in groups) if self.lengths else groups

    def for_transfer(self, run: Any) -> Any:
        return self.base.for_transfer(run)
