"""Open an uploaded picture or video within limits, apply its EXIF rotation, convert it to RGB."""

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice

import numpy as np
from PIL import Image, ImageOps

from viz_core.runtime.refusal import RefusalError

FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
MAX_BYTES = 10 * 2**20
MAX_PIXELS = 40_000_000
MAX_SCANS = 32
"""Passes of a progressive JPEG. Encoders write about ten; a decoder goes over all pixels in each of them."""

_NAMES = ("PNG", "JPEG", "WebP", "GIF")
_CUT_SHORT = "This picture cannot be read to its end: the file may be cut short. Save it again and try once more."
# What people send by mistake, by how it begins; last, a picture that is one in its first bytes alone.
_OTHER_FORMATS = (
    (
        rb"%PDF",
        "This is a PDF document, whatever its name says. Only {formats} pictures can be opened: save a page as PNG.",
    ),
    (
        rb"(<\?xml.*?>|<!--.*?-->|<!DOCTYPE[^>]*>|\s)*<svg",
        "This is an SVG drawing, whatever its name says. Only {formats} pictures can be opened: export it as PNG.",
    ),
    (
        rb"....ftyp(heic|heix|hevc|mif1|msf1|avif)",
        "This is a HEIC or AVIF photo. Only {formats} pictures can be opened: save it as JPEG.",
    ),
    (rb"(II\*\0|MM\0\*)", "This is a TIFF picture. Only {formats} pictures can be opened: save it as PNG."),
    (
        rb"....ftyp|\x1a\x45\xdf\xa3|RIFF....AVI ",
        "This is a video file. Only {formats} pictures can be opened: save a part of it as an animated GIF or WebP.",
    ),
    (rb"BM", "This is a BMP picture. Only {formats} pictures can be opened: save it as PNG."),
    (rb"\x89PNG\r\n|\xff\xd8\xff|GIF8|RIFF....WEBP", _CUT_SHORT),
)

# Of a JPEG: the markers of segments. A byte 255 of a scan's data is followed by 0; restarts divide a scan.
_MARKER = re.compile(rb"\xff[^\x00\x01\xd0-\xd8\xff]", re.DOTALL)
_START_OF_SCAN, _END_OF_IMAGE = 0xDA, 0xD9
_MAX_SEGMENTS = 4096


class PictureError(RefusalError, ValueError):
    """A file that cannot be opened as a picture; the message is for the person who uploaded it."""


def open_picture(content: bytes, max_bytes: int = MAX_BYTES, max_pixels: int = MAX_PIXELS) -> Image.Image:
    """Open PNG, JPEG, WebP or GIF (its first frame), turned upright as the camera's EXIF note says.

    Size is judged from the header, before anything is unpacked: at most 10 MB and 40 megapixels unless a host
    allows less. The name of a file counts for nothing. The picture keeps its mode; `as_rgb` takes any.

    Raises:
        PictureError: if it is too large, of another kind, or broken.
    """
    return _upright(next(read_frames(content, max_bytes, max_pixels)))


def read_frames(content: bytes, max_bytes: int, max_pixels: int, before: int = 0) -> Iterator[Image.Image]:
    """Yield each frame of a file, or the one of a still picture, until the next is read.

    PictureError as `open_picture`, or if all frames together, and `before` pixels of other files, are too many.
    """
    if not content:
        raise PictureError("This file is empty.")
    if len(content) > max_bytes:
        raise PictureError(
            "This file has {size:.1f} MB; a picture may have at most {most:g}.",
            size=len(content) / 2**20,
            most=max_bytes / 2**20,
        )
    try:
        image = Image.open(io.BytesIO(content), formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise PictureError(
            "This picture has more than the {most:g} megapixels that can be opened. Make it smaller and try again.",
            most=max_pixels / 1e6,
        ) from None
    except Exception:  # a broken header makes Pillow raise a dozen kinds of error
        raise PictureError(_why_not(content), formats=_NAMES) from None
    if image.width * image.height > max_pixels:
        raise PictureError(
            "This picture has {width:,} x {height:,} pixels: more than the {most:g} megapixels that can be opened. "
            "Make it smaller and try again.",
            width=image.width,
            height=image.height,
            most=max_pixels / 1e6,
        )
    if content.startswith(b"\xff\xd8") and has_many_scans(content):
        raise PictureError(
            "This JPEG has more than {most} passes over its pixels. Save it again as PNG or JPEG.", most=MAX_SCANS
        )
    for place in count():
        try:
            image.seek(place)
            if before + (place + 1) * image.width * image.height > max_pixels:
                raise PictureError(
                    "The frames of this video have more than {most:g} megapixels together. Make it smaller or shorter.",
                    most=max_pixels / 1e6,
                )
            image.load()
        except (MemoryError, PictureError):  # the first of a process with a limit, which says so
            raise
        except Exception as error:
            if place and isinstance(error, EOFError):
                return
            raise PictureError(_CUT_SHORT) from None
        yield image


def has_many_scans(content: bytes) -> bool:
    """Return whether a JPEG has more than `MAX_SCANS` scans: SOS markers up to its end (ITU-T T.81, annex B)."""
    scans, place = 0, 2
    for _ in range(_MAX_SEGMENTS):
        found = _MARKER.search(content, place)
        if found is None or found[0][1] == _END_OF_IMAGE:
            return False
        scans, place = scans + (found[0][1] == _START_OF_SCAN), found.end()
        if scans > MAX_SCANS:
            return True
        place += int.from_bytes(content[place : place + 2])  # of a scan only its header has a length
    return True


def as_rgb(image: Image.Image) -> Image.Image:
    """Return any picture as 8-bit RGB: rotated by its EXIF note, transparency on white, 16 bits scaled."""
    image = _upright(image)
    if image.mode.startswith("I") or image.mode == "F":
        values = np.asarray(image, dtype=np.float32)
        sixteen = image.mode.startswith("I;16") or values.max(initial=0) > 255
        top = max(65535.0, float(values.max(initial=0))) if sixteen else 255.0
        image = Image.fromarray((values.clip(0) * (255 / top)).round().astype(np.uint8))
    if image.has_transparency_data:
        image = image.convert("RGBA")
        background = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(background, image)
    return image.convert("RGB")


def _upright(image: Image.Image) -> Image.Image:
    """Rotated by its EXIF note; a broken note rotates nothing."""
    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # Pillow raises a dozen kinds of error
        return image


def _why_not(content: bytes) -> str:
    head = content[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    flags = re.DOTALL | re.IGNORECASE
    known = (sentence for pattern, sentence in _OTHER_FORMATS if re.match(pattern, head, flags))
    return next(known, "This file is not a picture that can be read. Only {formats} pictures can be opened.")


MAX_FRAMES = 8
"""Of longer videos so many frames are taken, evenly spaced from the first to the last."""

_MAX_READ = 1000


@dataclass(frozen=True, eq=False)
class Video:
    """Frames of a video."""

    frames: tuple[Image.Image, ...]  # RGB pictures of one size, in order
    times: tuple[float, ...]  # of each frame, in seconds from the beginning
    seconds: float  # duration of the video

    @classmethod
    def of(cls, frames: Sequence[Image.Image], fps: float = 1.0) -> "Video":
        """Pictures as a video of `fps` frames a second, above 0; PictureError if under 2, or if their sizes differ."""
        if not fps > 0:
            raise ValueError(f"fps: expected frames a second, above 0, got {fps}")
        if len(frames) < 2:
            raise PictureError("A video needs at least 2 frames: this is one picture.")
        sizes = tuple(dict.fromkeys(f"{frame.width} x {frame.height}" for frame in frames))
        if len(sizes) > 1:
            raise PictureError("The frames of a video need one size; these have {sizes} pixels.", sizes=sizes[:3])
        return cls(tuple(map(as_rgb, frames)), tuple(i / fps for i in range(len(frames))), len(frames) / fps)


def order_of_names(name: str) -> str:
    """A key that sorts names of files with their numbers as numbers: frame2 before frame10."""
    return re.sub(r"\d+", lambda number: number[0].zfill(20), name.lower())


def open_video(
    files: Sequence[bytes], max_bytes: int = MAX_BYTES, max_pixels: int = MAX_PIXELS, max_frames: int = MAX_FRAMES
) -> Video:
    """Open an animated GIF or WebP, or several pictures as frames, one a second.

    All frames together have at most 10 MB and 40 megapixels unless a host allows less, judged before each is unpacked.
    A frame that names no duration lasts 0.1 s, as in browsers.

    Raises:
        PictureError: as `open_picture`; for under 2 frames, over 1,000, of several sizes, or an animation among files.
    """
    nbytes, several = sum(map(len, files)), len(files) > 1
    if several and nbytes > max_bytes:
        sizes = {"size": nbytes / 2**20, "most": max_bytes / 2**20}
        raise PictureError("These files have {size:.1f} MB; a video may have at most {most:g}.", **sizes)
    frames, starts, pixels = list[Image.Image](), [0.0], 0
    for file in files:
        for image in islice(read_frames(file, max_bytes, max_pixels, pixels), 1 if several else _MAX_READ + 1):
            frames.append(as_rgb(image))
            if several and getattr(image, "is_animated", False) and image.format != "MPO":  # a photo with a preview
                raise PictureError("One of several files is an animation. Choose it alone, or still pictures.")
            starts.append(starts[-1] + (1 if several else (image.info.get("duration") or 100) / 1000))
        pixels += frames[-1].width * frames[-1].height
    if len(frames) > _MAX_READ:
        raise PictureError("This video has more than {most:,} frames. Cut out a part of it.", most=_MAX_READ)
    frames = list(Video.of(frames).frames)
    chosen = np.linspace(0, len(frames) - 1, min(len(frames), max_frames)).round().astype(int).tolist()
    return Video(tuple(frames[i] for i in chosen), tuple(starts[i] for i in chosen), starts[-1])
