"""Visitors' pictures, sounds and videos, each decoded in a limited process of its own, a few at once."""

import json
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from PIL import Image

from serving.compute.slots import BusyError
from serving.decoding import child
from serving.settings import settings
from viz_core.images.open_image import PictureError, Video
from viz_core.runtime.hooks import may_end
from viz_core.runtime.limited_process import LimitError, Limits, run_limited
from viz_core.runtime.refusal import RefusalError
from viz_core.sounds.open_sound import SoundError
from viz_core.sounds.sound import RATE, Sound

Refusal = TypeVar("Refusal", bound=RefusalError)

CPU_SECONDS = 5
MEMORY = 2**30
"""Bytes: 40 megapixels in red, green, blue and opacity take 0.7 GB while they are decoded."""

AT_ONCE = 2
"""Files that one process has decoded at once; each worker process has its own."""

_WAIT = 20.0  # seconds
_STEP = 0.1
_places = threading.BoundedSemaphore(AT_ONCE)


def decode(
    function: Callable[..., Any], content: bytes, allowed: Sequence[float], output: int, too_long: Refusal
) -> bytes:
    """Return what a function of `serving.decoding.child` makes of a file.

    RefusalError if the file is refused; the message is for the visitor. BusyError if too many files are being decoded.

    Args:
        allowed: the other arguments of the function.
        output: maximum bytes of the result.
        too_long: raised where a limit is exceeded; refusals of the function are raised as errors of its class.
    """
    _take_place()
    try:
        return run_limited(function, content, allowed, Limits(CPU_SECONDS, MEMORY, output))
    except RefusalError as refusal:
        raise type(too_long)(refusal.sentence, **refusal.values) from None
    except LimitError:
        raise too_long from None
    finally:
        _places.release()


def _take_place() -> None:
    end = time.monotonic() + _WAIT
    while not _places.acquire(timeout=_STEP):
        may_end()
        if time.monotonic() > end:
            raise BusyError("decoding")


_HEADER = 200  # bytes
_PREVIEW = 2**22


def decode_picture(content: bytes) -> Image.Image:
    """Return a visitor's picture, upright, in grey or RGB.

    PictureError if it is refused, or exceeds a limit of the process; the message is for the visitor. BusyError if too
    many files are being decoded.
    """
    allowed = settings().picture_limits
    return child.read_picture(decode(child.picture, content, allowed, 3 * allowed[1] + _HEADER, _too_long()))


def decode_preview(content: bytes) -> tuple[Image.Image, tuple[int, int]]:
    """Return a small RGB copy of a visitor's picture, and the width and height of the picture. Raises as above."""
    sent = decode(child.small_picture, content, settings().picture_limits, _PREVIEW, _too_long())
    return child.read_small_picture(sent)


def _too_long() -> PictureError:
    return PictureError(
        "This picture takes more than {seconds} s to decode, or too much memory. Save it again as PNG or JPEG.",
        seconds=CPU_SECONDS,
    )


_SAMPLE = 4  # bytes


def decode_sound(content: bytes) -> Sound:
    """Return a visitor's sound.

    SoundError if it is refused, or exceeds a limit of the process; the message is for the visitor. BusyError if too
    many files are being decoded.
    """
    allowed = settings().sound_limits
    too_long = SoundError(
        "This sound takes more than {seconds} s to decode, or too much memory. Save it again as WAV.",
        seconds=CPU_SECONDS,
    )
    output = int((allowed[1] + 1) * RATE * _SAMPLE)
    return Sound(np.frombuffer(decode(child.sound, content, allowed, output, too_long), dtype=np.float32))


_VIDEO_HEADER = 2**12  # bytes


def check_bytes(files: Sequence[bytes]) -> None:
    """Refuse files that are too large together, before anything is made of them.

    PictureError if they are; the message is for the visitor.
    """
    nbytes, most = sum(map(len, files)), settings().picture_limits[0]
    if nbytes > most:
        sizes = {"size": nbytes / 2**20, "most": most / 2**20}
        raise PictureError("These files have {size:.1f} MB; a video may have at most {most:g}.", **sizes)


def decode_video(files: Sequence[bytes]) -> Video:
    """Return a visitor's animation, or several pictures as frames.

    PictureError if it is refused, or exceeds a limit of the process; the message is for the visitor. BusyError if too
    many files are being decoded.
    """
    check_bytes(files)
    allowed = settings().picture_limits
    sent = b"\n".join((json.dumps([len(file) for file in files]).encode(), b"".join(files)))
    too_long = PictureError(
        "This video takes more than {seconds} s to decode, or too much memory. Make it smaller or shorter.",
        seconds=CPU_SECONDS,
    )
    return child.read_video(decode(child.video, sent, allowed, 3 * allowed[1] + _VIDEO_HEADER, too_long))
