"""Requests: a model with its input, as hashable values; pictures, videos and sounds by their digests."""

import base64
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any, ClassVar, Generic, Self, TypeVar

from PIL import Image

from serving.decoding.files import decode_picture, decode_video
from serving.requests.models import ModelSpec
from viz_core.images.open_image import Video, as_rgb
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
class Media:
    """What a request carries beside its text, identified by its digest: two with one digest are equal."""

    digest: str
    content: Any = field(compare=False, repr=False)

    @property
    def without_payload(self) -> Self:
        """The digest alone, which is equal to the whole."""
        return replace(self, content=None)

    def payload(self) -> Any:
        """Return the content. PayloadMissingError if only its digest is here."""
        if self.content is None:
            raise PayloadMissingError(self.digest)
        return self.content


def _embedded(file: bytes) -> str:
    return f"b64decode('{base64.b64encode(file).decode('ascii')}')"


def _opened(variable: str, opener: str, module: str, file: bytes, name: str) -> RunSource:
    """Return code that opens a file, which is embedded in the code if it is small, else read by its name."""
    opening = f"from {module} import {opener}\n\n{variable} = {opener}"
    if len(file) > MAX_CARRIED:
        need: Any = name.partition(".")[0]
        return RunSource(f"from pathlib import Path\n\n{opening}(Path('{name}').read_bytes())", (need,))
    return RunSource(f"from base64 import b64decode\n\n{opening}({_embedded(file)})")


class Picture(Media):
    """A picture: an image, or a visitor's file (bytes) that only a limited process decodes."""

    def open(self) -> Image.Image:
        """Return the image.

        PayloadMissingError if only its digest is here. PictureError if the file cannot be decoded.
        """
        content: Image.Image | bytes = self.payload()
        return decode_picture(content) if isinstance(content, bytes) else content

    def run_source(self) -> RunSource:
        """Return code that opens the picture as `image`; small pictures are embedded in the code.

        PayloadMissingError if only its digest is here.
        """
        content: Image.Image | bytes = self.payload()
        if not isinstance(content, bytes):
            file = BytesIO()
            as_rgb(content).save(file, "PNG")
            content = file.getvalue()
        return _opened("image", "open_picture", "viz_core.images.open_image", content, "picture.png")


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

        ValueError if the model cannot take this input; the message is for a person. PayloadMissingError if the request
        was sent without its picture or sound.
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


class SoundInput(Media):
    """A sound."""

    def open(self) -> Sound:
        """Return the sound. PayloadMissingError if only its digest is here."""
        sound: Sound = self.payload()
        return sound

    def run_source(self) -> RunSource:
        """Return code that opens the sound as `sound`; short sounds are embedded in the code.

        PayloadMissingError if only its digest is here.
        """
        if self.digest == TONES:
            return RunSource("from viz_core.sounds.sound import tone_sequence\n\nsound = tone_sequence()")
        return _opened("sound", "open_sound", "viz_core.sounds.open_sound", self.open().wav(), "sound.wav")


class VideoInput(Media):
    """A video: the file of an animation, or those of several pictures as frames."""

    def open(self) -> Video:
        """Return the video. PayloadMissingError if only its digest is here. PictureError if it cannot be decoded."""
        return decode_video(self.payload())

    def run_source(self) -> RunSource:
        """Return code that opens the video as `video`; short ones are embedded in the code.

        PayloadMissingError if only its digest is here.
        """
        files: tuple[bytes, ...] = self.payload()
        if sum(map(len, files)) > MAX_CARRIED:
            read = (
                "from pathlib import Path\n\nfrom viz_core.images.open_image import open_video, order_of_names\n\n"
                "paths = sorted(Path('video').iterdir(), key=lambda path: order_of_names(path.name))\n"
                "video = open_video([path.read_bytes() for path in paths])"
            )
            return RunSource(read, ("video",))
        opening = "from base64 import b64decode\n\nfrom viz_core.images.open_image import open_video\n\n"
        return RunSource(f"{opening}video = open_video([{', '.join(map(_embedded, files))}])")


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
    def without_payload(self) -> "ContributionRequest":
        return ContributionRequest(self.base.without_payload, self.lengths)

    def run(self, model: Any) -> Any:
        """Run the base request with recorded values. ValueError: also if a layer's output projection is not found."""
        with recording_values():
            run = self.base.run(model)
        found = contribution_lengths if self.lengths else contribution_shares
        return replace(run, trace=found(run.trace, model.network))

    def groups(self, run: Any, labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        groups = self.base.groups(run, labels)
        return tuple(replace(group, rows_sum_to_one=False) for group in groups) if self.lengths else groups

    def for_transfer(self, run: Any) -> Any:
        return self.base.for_transfer(run)
