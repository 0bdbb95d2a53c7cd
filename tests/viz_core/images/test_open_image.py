"""Every hostile file is opened upright or answered with a sentence."""

import warnings
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from tests.viz_core.hostile import bounded
from tests.viz_core.images.hostile_pictures import (
    BAD,
    BLUE,
    GOOD,
    GREEN,
    RED,
    WHITE,
    encode,
    phone_photo,
    png_header,
    quarters,
)
from viz_core.images.open_image import FORMATS, MAX_PIXELS, PictureError, as_rgb, open_picture


def similar(found: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    return all(abs(a - b) <= 12 for a, b in zip(found, wanted, strict=True))


def corners(image: Image.Image) -> list[tuple[int, ...]]:
    """Colours at the middles of the four quarters, row by row."""
    w, h = image.size
    return [image.getpixel((x, y)) for y in (h // 4, 3 * h // 4) for x in (w // 4, 3 * w // 4)]  # type: ignore[misc]


@pytest.mark.parametrize("name", GOOD)
def test_what_opens(name: str) -> None:
    content, size = GOOD[name]
    image = as_rgb(open_picture(content))
    assert (image.mode, image.size) == ("RGB", size)


@pytest.mark.attack("pictures")
@pytest.mark.parametrize("name", BAD)
def test_what_is_refused(name: str) -> None:
    content, words = BAD[name]
    with bounded(), pytest.raises(PictureError) as refused:
        open_picture(content)
    message = str(refused.value)
    assert words in message
    assert message.endswith(".")
    assert "Error" not in message


@pytest.mark.attack("pictures")
def test_a_bomb_is_refused_also_where_warnings_are_errors() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for size in ((10_000, 10_000), (60_000, 60_000)):
            with pytest.raises(PictureError, match="40 megapixels"):
                open_picture(png_header(*size))


def test_the_limit_is_on_pixels_not_on_sides() -> None:
    assert MAX_PIXELS == 40_000_000
    assert open_picture(encode(Image.new("1", (40_000, 1000)), "PNG")).size == (40_000, 1000)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_phone_photos_come_upright(orientation: int) -> None:
    image = as_rgb(open_picture(phone_photo(orientation)))
    assert image.size == (80, 40)
    assert all(map(similar, corners(image), (RED, GREEN, BLUE, WHITE)))


@pytest.mark.parametrize("name", ["animated GIF", "CMYK JPEG", "WebP with alpha", "palette"])
def test_colours_come_out_right(name: str) -> None:
    content = encode(quarters(mode="P"), "PNG") if name == "palette" else GOOD[name][0]
    found = corners(as_rgb(open_picture(content)))
    wanted = (RED, GREEN, BLUE, WHITE)
    # Inks and palettes are near, not exact.
    assert all(max(abs(a - b) for a, b in zip(f, w, strict=True)) <= 40 for f, w in zip(found, wanted, strict=True))


def test_sixteen_bits_are_scaled_not_cut() -> None:
    ramp = np.asarray(as_rgb(open_picture(GOOD["16-bit PNG"][0])))[0, :, 0]
    np.testing.assert_allclose(ramp, np.linspace(0, 255, 64), atol=0.51)
    dark = Image.fromarray(np.full((2, 2), 200, dtype=np.uint16))
    assert as_rgb(open_picture(encode(dark, "PNG"))).getpixel((0, 0)) == (1, 1, 1)


def test_transparency_lies_on_white() -> None:
    image = as_rgb(open_picture(GOOD["palette with transparency"][0]))
    assert similar(image.getpixel((3, 5)), RED)  # type: ignore[arg-type]
    assert image.getpixel((15, 5)) == WHITE
    half = as_rgb(Image.new("RGBA", (1, 1), (0, 0, 0, 128))).getpixel((0, 0))
    assert half == (127, 127, 127)


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
def test_a_broken_note_about_rotation_is_passed_over() -> None:
    exif = b"Exif\0\0MM\0*\0\0\0\x08\xff\xff\x01\x12\0\x03"
    image = open_picture(encode(quarters(80, 40), "JPEG", exif=exif, quality=95))
    assert image.size == (80, 40)


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
def test_cut_short_or_one_bit_turned_round_anywhere(name: str) -> None:
    content, random = GOOD[name][0], np.random.default_rng(0)
    for keep in np.linspace(0, len(content) - 1, 8).astype(int):
        opens_or_says_why(content[:keep])
    for place in random.integers(0, 8 * len(content), 12):
        spoiled = bytearray(content)
        spoiled[place // 8] ^= 1 << (place % 8)
        opens_or_says_why(bytes(spoiled))


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


def opens_or_says_why(content: bytes) -> None:
    try:
        outcome = as_rgb(open_picture(content)).mode
    except PictureError as refused:
        outcome = str(refused)
    assert outcome == "RGB" or outcome.endswith(".")
