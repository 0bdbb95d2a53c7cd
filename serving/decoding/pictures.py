"""Visitors' pictures, decoded in limited processes."""

from __future__ import annotations

from PIL import Image

from serving.decoding import child
from serving.decoding.process import CPU_SECONDS, decode
from serving.settings import settings
from viz_core.images.open_image import PictureError

_HEADER = 200  # bytes
_PREVIEW = 2**22


def decode_picture(content: bytes) -> Image.Image:
    """Return a visitor's picture, upright, in grey or RGB.

    Raises:
        PictureError: if it is refused, or exceeds a limit of the process; the message is for the visitor.
        BusyError: if too many files are being decoded.
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
