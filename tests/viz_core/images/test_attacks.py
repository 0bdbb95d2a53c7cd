"""Pictures made to harm: formats nobody offers, files that claim much, and every bit turned round."""

from __future__ import annotations

import io
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from tests.viz_core.bounded import bounded
from tests.viz_core.images.hostile_pictures import GOOD, encode, png_header, quarters
from viz_core.images.open_image import FORMATS, PictureError, as_rgb, open_picture

pytestmark = [pytest.mark.attack("pictures"), pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:Trunc")]
Image.init()
BEGINNINGS = {
    "PSD": b"8BPS\0\1" + bytes(6) + b"\0\3\0\0\0\4\0\0\0\4\0\x08\0\3",
    "FITS": b"SIMPLE  =                    T" + b" " * 2850,
    "EPS that runs": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(/etc/passwd) (r) file\n",
    "FLI": b"\x80\0\0\0\x11\xaf\1\0\4\0\4\0\x08\0" + bytes(114),
    "CUR": b"\0\0\2\0\1\0\x10\x10\0\0",
    "XPM": b'/* XPM */\nstatic char *x[] = {"4 4 1 1", "a c #000"};',
    "GBR": b"\0\0\0\x1c\0\0\0\2\0\0\0\4\0\0\0\4\0\0\0\4GIMP",
    "WMF": b"\xd7\xcd\xc6\x9a" + bytes(40),
    "MPEG": b"\0\0\1\xb3" + bytes(20),
    "SUN": b"\x59\xa6\x6a\x95" + bytes(28),
    "IPTC": b"\x1c\x01\x00\x00\x00",
    "MCIDAS": b"\0\0\0\0\0\0\0\4" + bytes(248),
    "PCD": b"PCD_" * 600,
    "FTEX": b"FTEX" + bytes(20),
    "XVTHUMB": b"P7 332\n4 4 255\n",
}


@lru_cache(maxsize=1)
def not_offered() -> dict[str, bytes]:
    """A file of every format that Pillow writes or knows by its beginning, and that is not offered."""
    files = dict(BEGINNINGS)
    for form in sorted(set(Image.SAVE) - set(FORMATS)):
        for mode in ("RGB", "L", "1", "P"):
            try:
                files.setdefault(form, encode(quarters(mode=mode), form))
            except Exception:  # not this mode, or not without a library
                continue
    files.pop("MPO", None)  # a JPEG by its beginning, and opened as one
    return files


@pytest.mark.parametrize("form", not_offered())
def test_a_format_that_is_not_offered_is_refused_before_it_is_read(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_args: Any) -> None:
        raise AssertionError("Pillow began to read it")

    for name, (_, accepts) in list(Image.OPEN.items()):
        if name not in FORMATS:
            monkeypatch.setitem(Image.OPEN, name, (never, accepts))
    with bounded(), pytest.raises(PictureError) as refused:
        open_picture(not_offered()[form])
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize("name", GOOD)
def test_one_bit_turned_round_anywhere(name: str) -> None:
    content, _ = GOOD[name]
    random = np.random.default_rng(0)
    for place in random.integers(0, 8 * len(content), 12):
        spoiled = bytearray(content)
        spoiled[place // 8] ^= 1 << (place % 8)
        opens_or_says_why(bytes(spoiled))


@pytest.mark.parametrize("name", GOOD)
def test_cut_short_anywhere(name: str) -> None:
    content, _ = GOOD[name]
    for keep in np.linspace(0, len(content) - 1, 8).astype(int):
        opens_or_says_why(content[:keep])


@given(st.sampled_from(sorted(GOOD)), st.sampled_from(sorted(GOOD)), st.integers(0, 400), st.binary(max_size=64))
@example("rotated photo", "rotated photo", 28, b"\0")  # whose EXIF note cannot be read
def test_parts_of_several_and_anything_between(first: str, second: str, cut: int, between: bytes) -> None:
    opens_or_says_why(GOOD[first][0][:cut] + between + GOOD[second][0][cut:])


CLAIMS = {
    "a PNG of 2^31 by 2^31": png_header(2**31 - 1, 2**31 - 1),
    "a PNG of 2^32 by nothing": png_header(2**32 - 1, 0),
    "a PNG of one line of 40 megapixels and one": png_header(40_000_001, 1),
    "a PNG of a million texts": png_header(1, 1, b"\0\0\0\0").replace(b"IDAT", b"tEXt"),
    "a GIF of 65,535 by 65,535": b"GIF89a\xff\xff\xff\xff\xf7\0\0" + bytes(768) + b",\0\0\0\0\xff\xff\xff\xff\0\x08",
    "a WebP of 16,384 by 16,384": b"RIFF\xff\xff\xff\x7fWEBPVP8X\x0a\0\0\0\0\0\0\0\xff\x3f\0\xff\x3f\0",
    "a JPEG of 65,535 by 65,535": encode(quarters(), "JPEG").replace(b"\x00\x14\x00\x28", b"\xff\xff\xff\xff", 1),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_what_claims_much_is_judged_by_its_header(claim: str) -> None:
    with bounded(), pytest.raises(PictureError):
        open_picture(CLAIMS[claim])


def test_an_animation_of_many_frames_is_its_first() -> None:
    frames = [Image.new("L", (8, 8), number % 256) for number in range(300)]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    assert as_rgb(open_picture(file.getvalue())).size == (8, 8)


def opens_or_says_why(content: bytes) -> None:
    try:
        outcome = as_rgb(open_picture(content)).mode
    except PictureError as refused:
        outcome = str(refused)
    assert outcome == "RGB" or outcome.endswith(".")
