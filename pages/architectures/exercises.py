"""Experiments for the book's exercises on long inputs, shown after the reader has answered."""

from __future__ import annotations

from pages.architectures.sizes import SizeInputs
from ui.chapter.chapter import Chapter
from viz_core.lessons.architectures.cheaper import held, savings

SHORT, LONG, HEADS = 1_000, 100_000, 8
TEXT, HEAD_WIDTH, TILE = 512, 32, 64


def long_inputs(chapter: Chapter, inputs: SizeInputs) -> None:
    """Count the numbers that a layer stores for a text and for one a hundred times as long."""
    short, long = (held(n, inputs.sizes.d, HEADS) for n in (SHORT, LONG))
    values: dict[str, object] = {}
    for name, count in short.items():
        times = long[name] // count
        values |= {f"{name}_short": f"{count:,}", f"{name}_long": f"{long[name]:,}", f"{name}_times": f"{times:,}"}
    chapter.text("measured.long", d=f"{inputs.sizes.d:,}", bytes=f"{4 * long['weights'] / 1e9:,.0f} GB", **values)


def cheaper(chapter: Chapter) -> None:
    """Compare four ways to compute attention on the same random queries, keys and values."""
    values: dict[str, object] = {}
    for name, saving in savings(TEXT, HEAD_WIDTH, TILE).items():
        values |= {
            f"{name}_held": f"{saving.held:,}",
            f"{name}_multiplications": f"{saving.multiplications:,}",
            f"{name}_change": f"{saving.change:.1e}" if 0 < saving.change < 1e-3 else f"{saving.change:.2f}",
        }
    chapter.text("measured.cheaper", n=TEXT, d=HEAD_WIDTH, width=TILE, **values)
