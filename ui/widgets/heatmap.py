"""Heatmaps of any size on a canvas: a million cells take as long as a few hundred with plotly.

The component in assets/components/heatmap gets 8 bits a cell for its colour, and what it needs for exact values; plotly
needs more than a second and 7 MB for a million cells. The header (see `framing`) holds

    rows, columns     size of the map
    low, high         the values of bytes 0 and 255
    colours           stops of the scale from low to high, "#rrggbb"
    pixels            offset of the bytes, row after row
    exact             null, or {kind, offset}: "cells" for float32 values, row after row; "sinusoid"
                      for the float64 angular frequencies of a sinusoidal table
    row_title, column_title, row_labels (null: the row's number), square, digits, parts, language, words
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from jaxtyping import Float, Num, UInt8
from plotly.colors import get_colorscale, unlabel_rgb
from torch import Tensor

from ui.widgets.component import component
from ui.widgets.figure_style import SIGNED_SCALE, WEIGHTS_SCALE
from viz_core.view.components import Sections, frame

mount_heatmap = component("heatmap")
"""Draw what `encode_heatmap` returns; new data under its key replaces it."""

_AS_IS = ("low", "high", "row_title", "column_title", "row_labels", "square", "digits")  # in the header

WORD_NAMES = ("alt", "cell", "about", "whole", "hint")
"""Words of a heatmap: its text alternative; what is said of a cell, with {row}, {column} and {value};
how a {value} known to 8 bits is written; the button that shows all of it; how to use it."""


@dataclass(frozen=True)
class Exact:
    """How exact values are sent: the "cells" themselves, or the frequencies of a "sinusoid"."""

    kind: Literal["cells", "sinusoid"]
    numbers: Num[np.ndarray, "..."]


@dataclass(frozen=True)
class Heatmap:
    """A map of values between `low` and `high`.

    Attributes:
        pixels: the values in 8 bits, see `to_pixels`.
        exact: without it, values are shown as "about", to a 255th of the range.
        row_labels: one for each row, as they are; None for numbers from 0.
        square: whether a cell is as wide as it is high.
        digits: decimals of a value.
        parts: what terms in the text name (#part-NAME): by name, the axis and how many rows or columns belong together.
    """

    pixels: UInt8[np.ndarray, "rows columns"]
    low: float
    high: float
    row_title: str
    column_title: str
    exact: Exact | None = None
    row_labels: tuple[str, ...] | None = None
    scale: str = SIGNED_SCALE
    square: bool = False
    digits: int = 6
    parts: Mapping[str, tuple[Literal["row", "column"], int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.pixels.size == 0:
            raise ValueError(f"pixels: expected at least one cell, got shape {self.pixels.shape}")
        if self.row_labels is not None and len(self.row_labels) != len(self.pixels):
            raise ValueError(f"row_labels: expected {len(self.pixels)}, got {len(self.row_labels)}")
        if not self.low < self.high:
            raise ValueError(f"low: expected below high={self.high}, got {self.low}")


def to_pixels(values: Float[Tensor, "rows columns"], low: float, high: float) -> UInt8[np.ndarray, "rows columns"]:
    """round(255 (v - low) / (high - low)), with what lies outside at the ends, and NaN at the low one."""
    scaled = (values - low).mul_(255 / (high - low)).round_().clamp_(0, 255).nan_to_num_(0)
    return scaled.cpu().numpy().astype(np.uint8)


def signed_heatmap(
    values: Float[Tensor, "rows columns"],
    row_title: str,
    column_title: str,
    row_labels: tuple[str, ...] | None = None,
    limit: float | None = None,
    square: bool = False,
) -> Heatmap:
    """Values centred on zero, each exact to float32: for maps small enough to send 5 bytes a cell.

    Args:
        limit: the value of the darkest colour; the largest absolute value unless given.
    """
    most = float(values.abs().nan_to_num(0, 0).max()) if limit is None else limit
    most = most if most > 0 else 1.0
    cells = Exact("cells", values.float().cpu().numpy())
    pixels = to_pixels(values, -most, most)
    return Heatmap(pixels, -most, most, row_title, column_title, cells, row_labels, square=square, digits=4)


def ranged_heatmap(values: Float[Tensor, "rows columns"], row_title: str, column_title: str) -> Heatmap:
    """Values in colours from the smallest that occurs to the largest, each exact to float32, in square cells."""
    low, high = (float(end(values.nan_to_num(0, 0, 0))) for end in (Tensor.min, Tensor.max))
    high = high if low < high else low + 1.0
    cells, pixels = Exact("cells", values.float().cpu().numpy()), to_pixels(values, low, high)
    return Heatmap(pixels, low, high, row_title, column_title, cells, scale=WEIGHTS_SCALE, square=True, digits=4)


def encode_heatmap(heatmap: Heatmap, words: Mapping[str, str], language: str = "en") -> bytes:
    """The bytes that the component draws.

    Args:
        words: all of `WORD_NAMES`.
        language: of the words, as a BCP 47 tag; decides how numbers are written.
    """
    missing = [name for name in WORD_NAMES if name not in words]
    if missing:
        raise ValueError(f"words: expected all of WORD_NAMES, got none for {', '.join(missing)}")
    sections = Sections()
    rows, columns = heatmap.pixels.shape
    exact = heatmap.exact
    header = {
        "rows": rows,
        "columns": columns,
        "colours": [
            c if c.startswith("#") else "#{:02x}{:02x}{:02x}".format(*map(int, unlabel_rgb(c)))
            for _, c in get_colorscale(heatmap.scale)  # evenly spaced in the scales used here
        ],
        **{name: getattr(heatmap, name) for name in _AS_IS},
        "parts": {name: {"axis": axis, "count": count} for name, (axis, count) in heatmap.parts.items()},
        "language": language,
        "words": {name: words[name] for name in WORD_NAMES},
        "pixels": sections.add(heatmap.pixels),
        "exact": None if exact is None else {"kind": exact.kind, "offset": sections.add(exact.numbers)},
    }
    return frame(header, sections)
