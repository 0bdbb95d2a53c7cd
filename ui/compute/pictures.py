"""What a reader shows to models: pictures with their classifications, sounds and videos."""

import hashlib
from collections.abc import Sequence
from io import BytesIO

from PIL import Image

from serving.decoding.child import preview
from serving.decoding.files import check_bytes, decode_preview, decode_sound
from serving.requests.models import ModelSpec, ShippedClassifier
from serving.requests.request import TONES, Media, Picture, SoundInput, VideoInput
from serving.requests.shipped import ClassificationRequest
from ui.compute.models import lab_vision_model, map_groups, run
from ui.compute.slots import cached
from viz_core.images.open_image import PictureError
from viz_core.maps.contributions import ContributionKind
from viz_core.pretrained import Classification
from viz_core.pretrained.classifier import PictureModel
from viz_core.pretrained.samples import drawn_picture
from viz_core.sounds.open_sound import SoundError
from viz_core.sounds.sound import Sound, tone_sequence
from viz_core.view.map_group import MapGroup

LAB = "Lab: "
"""Prefix of the name of a vision model of the model lab."""


def picture_model(name: str) -> ModelSpec[PictureModel]:
    """Return a shipped classifier, or a vision model of the lab if its name begins with "Lab: ".

    Raises:
        HubError: if the lab has no such model.
    """
    if name.startswith(LAB):
        return lab_vision_model(name.removeprefix(LAB))
    return ShippedClassifier(name)


def sample_picture(name: str) -> Picture:
    """Return one of the drawn pictures."""
    return Picture(f"sample {name}", drawn_picture(name))


def read_picture(content: bytes) -> Picture:
    """Return the picture of a visitor's file, once it could be decoded within the limits of this server.

    Raises:
        PictureError: if it cannot be decoded or is too large; the message is for the visitor.
    """
    picture = Picture(hashlib.sha256(content).hexdigest(), content)
    picture_preview(picture)
    return picture


def picture_preview(picture: Picture) -> tuple[Image.Image, tuple[int, int]]:
    """Return a small RGB copy of a picture, and the width and height of the picture itself.

    Raises:
        PictureError: as `read_picture`.
    """
    if isinstance(picture.content, bytes):
        return _decoded(picture)
    image = picture.open()
    return preview(image), image.size


@cached(keep=PictureError)
def _decoded(picture: Picture) -> tuple[Image.Image, tuple[int, int]]:
    return decode_preview(picture.payload())


def classification(request: ClassificationRequest) -> Classification:
    """Return the classification of a picture."""
    return run(request, "classification")


def picture_maps(
    request: ClassificationRequest, language: str, contribution_kind: ContributionKind = ""
) -> tuple[MapGroup, ...]:
    """Return the maps of a picture for an attention view."""
    return map_groups(request, "vision-transformer", language, contribution_kind)


def sample_sound() -> SoundInput:
    """Return the tones that ship with the project."""
    return SoundInput(TONES, tone_sequence())


def read_sound(content: bytes) -> SoundInput:
    """Read a visitor's sound file within the limits of this server.

    Raises:
        SoundError: if it cannot be decoded or is too long; the message is for the visitor.
    """
    digest = hashlib.sha256(content).hexdigest()
    return SoundInput(digest, _decoded_sound(Media(digest, content)))


@cached(keep=SoundError)
def _decoded_sound(file: Media) -> Sound:
    return decode_sound(file.payload())


_FRAMES, _PART = 4, 160


def sample_video(name: str) -> VideoInput:
    """Return a camera's way across one of the drawn pictures, in four frames."""
    picture, files = drawn_picture(name), []
    for i in range(_FRAMES):
        left = i * (picture.width - _PART) // (_FRAMES - 1)
        top = (picture.height - _PART) // 2
        file = BytesIO()
        picture.crop((left, top, left + _PART, top + _PART)).save(file, "PNG")
        files.append(file.getvalue())
    return VideoInput(f"sample video {name}", tuple(files))


def read_video(files: Sequence[bytes]) -> VideoInput:
    """Return the video of a visitor's files, once it could be decoded within the limits of this server.

    Raises:
        PictureError: if it cannot be decoded or is too large; the message is for the visitor.
    """
    check_bytes(files)
    digest = hashlib.sha256()
    for file in files:
        digest.update(len(file).to_bytes(8))
        digest.update(file)
    video = VideoInput(digest.hexdigest(), tuple(files))
    _open(video)
    return video


@cached(keep=PictureError)
def _open(video: VideoInput) -> None:
    video.open()
