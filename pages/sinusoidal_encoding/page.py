"""Sinusoidal encoding: the table, its columns, its binary cousin and its similarity."""

from functools import partial

import torch

from pages.sinusoidal_encoding.figures import table_figure
from pages.sinusoidal_encoding.parts import ANSWERS, WIDEST, code, curves, main_figure, similarity, sources
from ui.chapter.chapter import Chapter
from viz_core.lessons.sinusoidal_encoding import (
    measured_wavelengths,
    offset_error,
    similarity_by_offset,
    wavelengths,
)
from viz_core.positional import PositionalEncoding, angular_frequencies, sinusoidal_table

chapter = Chapter("sinusoidal-encoding")
chapter.question()
chapter.definition()
with chapter.card("main"):
    with chapter.main_controls():
        d = int(chapter.controls.slider("d", 2, WIDEST, 32))
        n = int(chapter.controls.slider("n", 1, 2000, 60))
        with chapter.controls.more():
            base = chapter.controls.number("base", 1, 1_000_000, 10_000, 1000)
        broken = chapter.break_it("no-cosine", "odd", "single")
    table = sinusoidal_table(n, d, base, dtype=torch.float64)
    chapter.side_by_side(broken, partial(main_figure, chapter, table, base))

chapter.flush()

chapter.exercise("similar", marks=ANSWERS)
chapter.takeaways()
chapter.next()


def library() -> None:
    """Draw the source cards, the library's code and the downloads."""
    sources(chapter)
    chapter.code(
        PositionalEncoding,
        sinusoidal_table,
        angular_frequencies,
        measured_wavelengths,
        similarity_by_offset,
        offset_error,
    )
    chapter.downloads(
        {
            "table": table.numpy(),
            "wavelengths": lambda: wavelengths(d, base).numpy(),
            "similarity": lambda: similarity_by_offset(table).numpy(),
        },
        figure=lambda: table_figure(table, chapter.words.group("figure")),
    )


chapter.deeper(
    {
        "mathematics": lambda: chapter.text("mathematics"),
        "curves": lambda: curves(chapter, table, base),
        "similarity": lambda: similarity(chapter, table),
        "code": lambda: code(chapter, table, base),
        "library": library,
    }
)
