"""Pictures as people really bring them, made on the spot: good ones in odd forms, broken ones, and what is none."""

import io
import struct
import zlib

import numpy as np
from PIL import Image

RED, GREEN, BLUE, WHITE = (220, 30, 30), (30, 160, 40), (30, 40, 200), (255, 255, 255)


def quarters(width: int = 40, height: int = 20, mode: str = "RGB") -> Image.Image:
    """Red top left, green top right, blue bottom left, white bottom right: any turn shows."""
    image = Image.new("RGB", (width, height))
    for colour, x, y in ((RED, 0, 0), (GREEN, 1, 0), (BLUE, 0, 1), (WHITE, 1, 1)):
        image.paste(colour, (x * width // 2, y * height // 2, width, height))
    return image.convert(mode)


def encode(image: Image.Image, form: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def animated_gif() -> bytes:
    second = Image.new("RGB", (40, 20), (0, 0, 0))
    return encode(quarters(), "GIF", save_all=True, append_images=[second, second], duration=50, loop=0)


def sixteen_bit_png() -> bytes:
    """A ramp from black on the left to white on the right, in 65,536 steps of grey."""
    ramp = np.linspace(0, 65535, 64).round().astype(np.uint16)
    return encode(Image.fromarray(np.tile(ramp, (8, 1))), "PNG")


def palette_with_transparency() -> bytes:
    """Red on the left, clear on the right."""
    image = Image.new("P", (20, 10), 0)
    image.putpalette([*RED, *BLUE])
    image.paste(1, (10, 0, 20, 10))
    return encode(image, "PNG", transparency=1)


def phone_photo(orientation: int) -> bytes:
    """The quarters as a phone stores them when held another way: lying wrong, with a note how to turn them."""
    undo = "FLIP_LEFT_RIGHT ROTATE_180 FLIP_TOP_BOTTOM TRANSPOSE ROTATE_90 TRANSVERSE ROTATE_270".split()
    image = quarters(80, 40)
    if orientation > 1:
        image = image.transpose(Image.Transpose[undo[orientation - 2]])
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encode(image, "JPEG", exif=exif, quality=95)


def png_header(width: int, height: int, data: bytes = b"") -> bytes:
    """A PNG that claims this size, with what data it is given."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


# What opens, and its size once upright.
GOOD = {
    "one pixel": (encode(Image.new("RGB", (1, 1), RED), "PNG"), (1, 1)),
    "30,000 x 2": (encode(Image.new("RGB", (30_000, 2), GREEN), "PNG"), (30_000, 2)),
    "animated GIF": (animated_gif(), (40, 20)),
    "CMYK JPEG": (encode(quarters(mode="CMYK"), "JPEG", quality=95), (40, 20)),
    "16-bit PNG": (sixteen_bit_png(), (64, 8)),
    "palette with transparency": (palette_with_transparency(), (20, 10)),
    "rotated photo": (phone_photo(6), (80, 40)),
    "black and white": (encode(quarters(mode="1"), "PNG"), (40, 20)),
    "grey with alpha": (encode(quarters(mode="LA"), "PNG"), (40, 20)),
    "WebP with alpha": (encode(quarters(mode="RGBA"), "WEBP", lossless=True), (40, 20)),
}

_SVG = (
    b'<?xml version="1.0"?>\n<!-- drawn -->\n<svg xmlns="http://www.w3.org/2000/svg"><rect width="9" height="9"/></svg>'
)
_PNG = encode(quarters(400, 300), "PNG")
_JPEG = encode(quarters(400, 300), "JPEG")

# What is refused, and the words that must be in the sentence.
BAD = {
    "nothing": (b"", "This file is empty."),
    "too many bytes": (_PNG + bytes(10 * 2**20), "10.0 MB; a picture may have at most 10"),
    "SVG named .png": (_SVG, "This is an SVG drawing"),
    "SVG after a mark": (b"\xef\xbb\xbf  " + _SVG, "This is an SVG drawing"),
    "PDF named .png": (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj", "This is a PDF document"),
    "HEIC": (b"\0\0\0\x18ftypheic\0\0\0\0", "HEIC or AVIF"),
    "TIFF": (encode(quarters(), "TIFF"), "This is a TIFF picture"),
    "BMP": (encode(quarters(), "BMP"), "This is a BMP picture"),
    "text": (b"not a picture at all", "not a picture that can be read"),
    "web page": (b"<!DOCTYPE html><html><body>svg</body></html>", "not a picture that can be read"),
    "only a signature": (b"\x89PNG\r\n\x1a\n", "cannot be read to its end"),
    "truncated PNG": (_PNG[: len(_PNG) // 2], "cannot be read to its end"),
    "truncated JPEG": (_JPEG[: len(_JPEG) // 2], "cannot be read to its end"),
    "truncated GIF": (animated_gif()[:60], "cannot be read to its end"),
    "41 megapixels claimed": (png_header(8200, 5000), "8,200 x 5,000 pixels: more than the 40 megapixels"),
    "decompression bomb": (png_header(60_000, 60_000, bytes(1000)), "more than the 40 megapixels"),
    "a side of billions": (png_header(2**31 - 1, 2**31 - 1), "more than the 40 megapixels"),
    "no pixels": (png_header(0, 5), "cannot be read to its end"),
    "data that unpack to nothing": (png_header(50, 50, b""), "cannot be read to its end"),
}
