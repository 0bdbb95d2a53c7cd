"""What the limited process runs: decoders from bytes to bytes, and a preview. It imports no more than they need."""

import json
from collections.abc import Iterator

from PIL import Image

from viz_core.images.open_image import Video, as_rgb, open_picture, open_video


def preview(image: Image.Image, side: int = 512) -> Image.Image:
    """Return any picture in RGB, at most `side` pixels on its longer side; never the whole of a large one.

    One that is all but a line is drawn thicker, so that something is left of it wherever it is made smaller again.
    """
    larger = max(image.size) / (4 * side)
    if larger > 1:
        rough = max(1, round(image.width / larger)), max(1, round(image.height / larger))
        image = image.resize(rough, Image.Resampling.NEAREST)
    colour = as_rgb(image)
    colour.thumbnail((side, side))
    thick = max(colour.size) // 64
    return colour if min(colour.size) >= thick else colour.resize([max(length, thick) for length in colour.size])


_STRIP = 2**20  # pixels that are converted at once: transparency on white takes four times their memory


def picture(content: bytes, max_bytes: int, max_pixels: int) -> Iterator[bytes]:
    """Yield a line with mode, width and height, then the pixels, row by row: grey ones as L, others as RGB."""
    image = open_picture(content, max_bytes, max_pixels)
    mode = "L" if image.mode == "L" and not image.has_transparency_data else "RGB"
    yield _header(mode, image.size)
    rows = max(1, _STRIP // image.width) if image.mode not in ("I", "F") else image.height  # scaled by their largest
    for top in range(0, image.height, rows):
        strip = image.crop((0, top, image.width, min(top + rows, image.height)))
        yield (strip if mode == "L" else as_rgb(strip)).tobytes()


def small_picture(content: bytes, max_bytes: int, max_pixels: int) -> Iterator[bytes]:
    """Yield the same of a preview, after a line with the width and height of the picture itself."""
    image = open_picture(content, max_bytes, max_pixels)
    yield _header(*image.size)
    small = preview(image)
    yield _header(small.mode, small.size)
    yield small.tobytes()


def video(content: bytes, max_bytes: int, max_pixels: int) -> Iterator[bytes]:
    """Yield a line with the size of the frames, their times and the duration, then their pixels in RGB.

    Args:
        content: a line with the lengths of the files, then the files.
    """
    lengths, _, joined = content.partition(b"\n")
    files, start = [], 0
    for length in json.loads(lengths):
        files.append(joined[start : start + length])
        start += length
    found = open_video(files, max_bytes, max_pixels)
    yield _header(found.frames[0].size, found.times, found.seconds)
    for frame in found.frames:
        yield frame.tobytes()


def sound(content: bytes, max_bytes: int, max_seconds: float) -> bytes:
    """Return the samples of a sound, as float32."""
    from viz_core.sounds.open_sound import open_sound

    return open_sound(content, max_bytes, max_seconds).samples.tobytes()


def _header(*values: object) -> bytes:
    return json.dumps(values).encode() + b"\n"


def read_picture(sent: bytes) -> Image.Image:
    """Return the picture that was sent."""
    header, _, pixels = sent.partition(b"\n")
    mode, size = json.loads(header)
    return Image.frombytes(mode, tuple(size), pixels)


def read_small_picture(sent: bytes) -> tuple[Image.Image, tuple[int, int]]:
    """Return a preview that was sent, and the size of the picture itself."""
    header, _, small = sent.partition(b"\n")
    width, height = json.loads(header)
    return read_picture(small), (width, height)


def read_video(sent: bytes) -> Video:
    """Return the video that was sent."""
    header, _, pixels = sent.partition(b"\n")
    (width, height), times, seconds = json.loads(header)
    length = 3 * width * height
    parts = (pixels[i * length : (i + 1) * length] for i in range(len(times)))
    frames = tuple(Image.frombytes("RGB", (width, height), part) for part in parts)
    return Video(frames, tuple(times), seconds)
