"""Videos for vision-language models."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from io import BytesIO

from serving.decoding.videos import check_bytes
from serving.requests.video import VideoInput
from ui.compute.slots import cached
from viz_core.images.drawn import drawn_picture
from viz_core.images.open_image import PictureError

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
