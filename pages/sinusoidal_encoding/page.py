"""Sinusoidal encoding: the table, its columns, its binary cousin and its similarity."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import streamlit as st
import torch

from pages.sinusoidal_encoding.figures import Table
from pages.sinusoidal_encoding.parts import ANSWERS, WIDEST, code, curves, main_figure, similarity, sources
from ui.chapter.chapter import Chapter
from viz_core.lessons.sinusoidal_encoding import measured_wavelengths, offset_error, similarity_by_offset, wavelengths
from viz_core.positional import PositionalEncoding, angular_frequencies, sinusoidal_table

chapter = Chapter("sinusoidal-encoding")
chapter.question()
chapter.definition()


@dataclass
class Shown:
    """What the card shows now, for the sections below; and whether the answer to the prediction is marked on it."""

    table: Table
    base: float
    marked: bool


drawn: list[Shown] = []  # of the last run of the whole page, and of the card since


def table_and_claims() -> None:
    """The card, which alone of the page runs again for another table.

    The whole page runs if an open section or the prediction's marks depend on the table.
    """
    if drawn and chapter.any_open(sections):
        st.rerun()
    with chapter.card("main", has_question=True):
        with chapter.main_controls():
            d = int(chapter.controls.slider("d", 2, WIDEST, 32))
            n = int(chapter.controls.slider("n", 1, 2000, 60))
            with chapter.controls.more():
                base = chapter.controls.number("base", 1, 1_000_000, 10_000, 1000)
            broken = chapter.break_it("no-cosine", "odd", "single")
        marked = chapter.marks_answer("similar", ANSWERS)
        if drawn and marked != drawn[0].marked:
            st.rerun()
        table = sinusoidal_table(n, d, base, dtype=torch.float64)
        chapter.side_by_side(broken, partial(main_figure, chapter, table, base))
    drawn[:] = [Shown(table, base, marked)]
    chapter.exercise("similar", marks=ANSWERS)


def library(now: Shown) -> None:
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
    d = now.table.shape[1]
    chapter.downloads(
        {
            "table": now.table.numpy(),
            "wavelengths": lambda: wavelengths(d, now.base).numpy(),
            "similarity": lambda: similarity_by_offset(now.table).numpy(),
        }
    )


sections: dict[str, Callable[[Shown], None]] = {
    "mathematics": lambda _now: chapter.text("mathematics"),
    "curves": lambda now: curves(chapter, now.table, now.base),
    "similarity": lambda now: similarity(chapter, now.table),
    "code": lambda now: code(chapter, now.table, now.base),
    "library": library,
}
chapter.fragment(table_and_claims)

chapter.takeaways()
chapter.next()
chapter.deeper({name: partial(lambda draw: draw(drawn[0]), draw) for name, draw in sections.items()})
