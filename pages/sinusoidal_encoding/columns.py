"""The table's columns: as curves, and beside the binary code."""

from __future__ import annotations

from functools import partial

import streamlit as st

from pages.sinusoidal_encoding.figures import CODE_POSITIONS, Table, binary_figure, curve_figure
from ui.chapter.chapter import Chapter
from ui.widgets.figure_style import CATEGORIES
from viz_core.lessons.sinusoidal_encoding import properties

WIDEST = 512  # columns a table can have here
BOOKS_COLUMNS = (6, 7, 8, 9)


def curves(chapter: Chapter, table: Table, base: float) -> None:
    """Draw the chosen columns, by default the book's; a choice survives a narrower table."""
    d, most = table.shape[1], len(CATEGORIES)
    chosen = chapter.controls.multiselect("columns", range(WIDEST), BOOKS_COLUMNS, most)
    if not chosen:
        chapter.text("columns", most=most)
        return
    columns = [column for column in chosen if column < d] or list(range(d)[:4])
    missing = [str(column) for column in chosen if column >= d]
    if missing:
        st.caption(chapter.words("columns.missing", last=d - 1, missing=missing))
    lengths = properties.wavelengths(d, base)
    shown = {
        column: chapter.words("figure.column", column=column, wavelength=f"{lengths[column]:,.2f}")
        for column in columns
    }
    figure = partial(curve_figure, table, shown, chapter.words.group("figure"))
    chapter.figure(
        "curves",
        figure,
        height=400,
        summary={column: f"{lengths[column]:,.2f}" for column in columns},
        n=len(table),
        factor=f"{base ** (2 / d):.3f}",
    )


def code(chapter: Chapter, table: Table, base: float) -> None:
    """Positions in binary beside columns of the table."""
    shown = min(len(table), CODE_POSITIONS)
    bits = properties.binary_code(shown).shape[1]
    columns = properties.doubling_columns(bits, table.shape[1], base)
    chapter.text("code")
    chapter.text("space")
    names = [str(column) for column in columns if column is not None]
    figure = partial(binary_figure, table, base, chapter.words.group("figure"))
    step = properties.largest_step(table[:shown], [column for column in columns if column is not None])
    chapter.figure("code", figure, last=shown - 1, columns=names, step=f"{step:.2f}")
    if None in columns:
        st.caption(chapter.words("code.gaps"))
