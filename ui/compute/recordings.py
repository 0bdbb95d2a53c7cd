"""Sounds for speech models, and videos for vision-language models."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from io import BytesIO

from serving.decoding.files import check_bytes, decode_sound
from serving.requests.request import TONES, Media, SoundInput, VideoInput
from ui.compute.slots import cached
from viz_core.images.drawn import drawn_picture
from viz_core.images.open_image import PictureError
from viz_core.sounds.open_sound import SoundError
from viz_core.sounds.sound import Sound, tone_sequence


def sample_sound() -> SoundInput:
    """Return the tones that ship with the project."""
    return SoundInput(TONES, tone_sequence())


def read_sound(content: bytes) -> SoundInput:
    """Read a visitor's sound file within the limits of this server.

    Raises:
        SoundError: if it cannot be decoded or is too long; the message is for the visitor.
    """
    digest = hashlib.sha256(content).hexdigest()
    return SoundInput(digest, _decoded(Media(digest, content)))


@cached(keep=SoundError)
def _decoded(file: Media) -> Sound:
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
