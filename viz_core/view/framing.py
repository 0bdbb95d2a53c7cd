"""A header and arrays as one sequence of bytes, for components that take raw bytes without base64.

The bytes are

    4 bytes    length of the header, little-endian
    header     JSON, padded with spaces so that what follows starts at a multiple of 4
    sections   arrays, each at a multiple of 4; the header says where

and assets/components/shared/mount.js reads them.
"""

import json
import struct
from typing import Any

import numpy as np


class Sections:
    """Arrays one after the other, each at a multiple of 4 so that JavaScript can read it where it lies."""

    def __init__(self) -> None:
        self.data = bytearray()

    def add(self, array: np.ndarray) -> int:
        """Append an array; its offset from the first section."""
        offset = len(self.data)
        self.data += array.tobytes()
        self.data += bytes(-len(self.data) % 4)
        return offset


def frame(header: dict[str, Any], sections: Sections) -> bytes:
    """Header and sections as bytes."""
    # ASCII escapes carry any token, half a surrogate pair included.
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 4)
    return b"".join((struct.pack("<I", len(text)), text, sections.data))


def unframe(data: bytes) -> tuple[dict[str, Any], int]:
    """The header, and where the first section starts."""
    start = 4 + struct.unpack_from("<I", data)[0] if len(data) >= 4 else 4
    if len(data) < start:
        raise ValueError(f"data: expected a header of {start} bytes, got {len(data)} bytes in all")
    return json.loads(data[4:start]), start
