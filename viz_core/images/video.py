"""Videos: frames with their times, from an animated GIF or WebP or from several pictures."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from PIL import Image

from viz_core.images.open_image import MAX_BYTES, MAX_PIXELS, PictureError, as_rgb, read_frames

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
