"""Requests: a model with its input, as hashable values; pictures, videos and sounds by their digests."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Self, TypeVar

from PIL import Image

from serving.decoding.files import decode_picture, decode_video
from serving.requests.models import ModelSpec
from viz_core.images.open_image import Video
from viz_core.maps.contributions import contribution_lengths, contribution_shares
from viz_core.sounds.sound import Sound
from viz_core.trace import recording_values
from viz_core.view.map_group import MapGroup

Model = TypeVar("Model")
Run = TypeVar("Run")


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


class Picture(Media):
    """A picture: an image, or a visitor's file (bytes) that only a limited process decodes."""

    def open(self) -> Image.Image:
        """Return the image.

        PayloadMissingError if only its digest is here. PictureError if the file cannot be decoded.
        """
        content: Image.Image | bytes = self.payload()
        return decode_picture(content) if isinstance(content, bytes) else content


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


TONES = "sample tones"
"""The digest of the drawn sound."""


class SoundInput(Media):
    """A sound."""

    def open(self) -> Sound:
        """Return the sound. PayloadMissingError if only its digest is here."""
        sound: Sound = self.payload()
        return sound


class VideoInput(Media):
    """A video: the file of an animation, or those of several pictures as frames."""

    def open(self) -> Video:
        """Return the video. PayloadMissingError if only its digest is here. PictureError if it cannot be decoded."""
        return decode_video(self.payload())


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
