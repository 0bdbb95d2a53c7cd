"""Visitors' videos, decoded in a limited process."""

from __future__ import annotations

import json
from collections.abc import Sequence

from serving.decoding import child
from serving.decoding.process import CPU_SECONDS, decode
from serving.settings import settings
from viz_core.images.open_image import PictureError
from viz_core.images.video import Video

_HEADER = 2**12  # bytes


def check_bytes(files: Sequence[bytes]) -> None:
    """Refuse files that are too large together, before anything is made of them.

    Raises:
        PictureError: if they are; the message is for the visitor.
    """
    nbytes, most = sum(map(len, files)), settings().picture_limits[0]
    if nbytes > most:
        sizes = {"size": nbytes / 2**20, "most": most / 2**20}
        raise PictureError("These files have {size:.1f} MB; a video may have at most {most:g}.", **sizes)


def decode_video(files: Sequence[bytes]) -> Video:
    """Return a visitor's animation, or several pictures as frames.

    Raises:
        PictureError: if it is refused, or exceeds a limit of the process; the message is for the visitor.
        BusyError: if too many files are being decoded.
    """
    check_bytes(files)
    allowed = settings().picture_limits
    sent = b"\n".join((json.dumps([len(file) for file in files]).encode(), b"".join(files)))
    too_long = PictureError(
        "This video takes more than {seconds} s to decode, or too much memory. Make it smaller or shorter.",
        seconds=CPU_SECONDS,
    )
    return child.read_video(decode(child.video, sent, allowed, 3 * allowed[1] + _HEADER, too_long))
