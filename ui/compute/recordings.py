"""Sounds for speech models, and videos for vision-language models."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BytesIO

from serving.decoding.files import check_bytes, decode_sound
from serving.requests.request import TONES, SoundInput, VideoInput
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
    found = _decoded(SoundFile(digest, content))
    if isinstance(found, SoundError):
        raise found
    return SoundInput(digest, found)


@dataclass(frozen=True)
class SoundFile:
    """A sound file, identified by its digest."""

    digest: str
    content: bytes | None = field(compare=False, repr=False)

    @property
    def without_payload(self) -> SoundFile:
        """The digest alone, which is equal to the file."""
        return SoundFile(self.digest, None)


@cached()
def _decoded(file: SoundFile) -> Sound | SoundError:
    """The sound, or why there is none: what cannot be decoded is not tried again in every run of a page."""
    assert file.content is not None
    try:
        return decode_sound(file.content)
    except SoundError as error:
        return error


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
    if error := _refusal(video):
        raise error
    return video


@cached()
def _refusal(video: VideoInput) -> PictureError | None:
    """Why it cannot be decoded: what is refused is not tried again in every run of a page."""
    try:
        video.open()
    except PictureError as error:
        return error
    return None
