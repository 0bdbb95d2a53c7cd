"""Every hostile file is opened upright or answered with a sentence."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from PIL import Image

from tests.viz_core.bounded import bounded
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
from viz_core.images.open_image import MAX_PIXELS, PictureError, as_rgb, open_picture


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


@pytest.mark.parametrize(
    "content",
    [
        GOOD["animated GIF"][0],
        GOOD["CMYK JPEG"][0],
        GOOD["WebP with alpha"][0],
        encode(quarters(mode="RGBA"), "PNG"),
        encode(quarters(mode="P"), "PNG"),
    ],
    ids=["first frame of a GIF", "CMYK", "WebP", "RGBA", "palette"],
)
def test_colours_come_out_right(content: bytes) -> None:
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
