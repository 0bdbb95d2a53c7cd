"""Parts of the page: the table, its columns, its properties and sources."""

import math
from functools import partial
from typing import Any

import streamlit as st
import torch
from PIL import Image

from pages.sinusoidal_encoding.figures import (
    CODE_POSITIONS,
    MAP_POSITIONS,
    Table,
    binary_figure,
    curve_figure,
    error_heatmap,
    offset_figure,
    plain_heatmap,
    similarity_heatmap,
    table_heatmap,
)
from ui.blocks.over_picture import signed_image
from ui.chapter.chapter import Chapter
from ui.widgets.choices import Mark, Marks
from ui.widgets.figure_style import CATEGORIES
from viz_core.lessons import sinusoidal_encoding as properties
from viz_core.lessons.sinusoidal_encoding import lone_sine, single_precision, wavelengths, without_cosines
from viz_core.positional import angular_frequencies, sinusoidal_table

WIDEST = 512  # columns a table can have here
BOOKS_COLUMNS = (6, 7, 8, 9)
_BOOKS_TABLE = {"d": 32, "n": 60, "base": 10_000}
ANSWERS = Marks(
    "heatmap-table",
    tuple(Mark(y=(row / 60, (row + 1) / 60), part="[data-part=stage]") for row in (10, 20)),
    _BOOKS_TABLE,
    _BOOKS_TABLE,
)
"""The rows of the two positions of the prediction."""


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


PUBLISHED_OFFSETS = (1, 2, 5, 10, 20, 59)


def claims(chapter: Chapter, table: Table, base: float, broken: str) -> None:
    """The claims about the table with their residuals, also for an odd width or a single position."""
    n, d = table.shape
    with chapter.claim_row("claims"):
        if broken == "odd":
            return _odd_claims(chapter, table)
        if d % 2:
            chapter.claim("norm-odd", lambda: properties.norm_error(table, base), 1e-10, pairs=d // 2)
        else:
            chapter.claim("norm", lambda: properties.norm_error(table, base), 1e-10, norm=d // 2)
        if n > 1:
            lengths = properties.wavelengths(d, base)[: d // 2 * 2]
            span = {"shortest": f"{lengths[0]:,.2f}", "longest": f"{lengths[-1]:,.2f}"}
            chapter.claim("wavelength", lambda: properties.wavelength_error(table, base), 1e-9, **span)
            around = {"count": len(properties.start_positions(n)), "paired": d // 2 * 2}
            name = "offset-odd" if d % 2 else "offset"
            chapter.claim(name, lambda: properties.offset_error(properties.paired(table)), 1e-10, **around)
            offset, distance = properties.nearest_rows(table)
            chapter.claim_at_least("distinct", distance, 1e-6, n=f"{n:,}", offset=f"{offset:,}")
    if d % 2:
        chapter.text("odd", paired=d - 1, difference=f"{properties.offset_error(table):.2g}")
    if n == 1:
        chapter.text("one")


def _odd_claims(chapter: Chapter, table: Table) -> None:
    """What is claimed of whole pairs, measured on a table that ends on half a pair."""
    n, d = table.shape
    pairs = (table.square().sum(dim=1) - d // 2).abs().max()
    chapter.claim("norm", float(pairs), 1e-10, norm=d // 2)
    count = len(properties.start_positions(n))
    chapter.claim("offset", lambda: properties.offset_error(table), 1e-10, count=count)


def similarity(chapter: Chapter, table: Table) -> None:
    """Every position with every other, and the one curve behind it."""
    n, names = len(table), chapter.words.group("figure")
    curve = properties.similarity_by_offset(table)
    left, right = st.columns(2)
    with left:
        shown = min(n, MAP_POSITIONS)
        heatmap = similarity_heatmap(table, names)
        ends: dict[str, Any] = {"smallest": f"{heatmap.low:.2f}", "largest": f"{heatmap.high:.2f}"}
        chapter.heatmap("similarity", heatmap, shown=shown, **ends)
        if shown < n:
            st.caption(chapter.words("similarity.first", shown=shown, n=f"{n:,}"))
    with right:
        summary = {f"k = {k}": f"{curve[k]:.4f}" for k in PUBLISHED_OFFSETS if k < n}
        figure = offset_figure(table, names)
        chapter.figure("offsets", figure, summary=summary)
    if n > 1:
        difference = properties.offset_error(table)
        chapter.finding("stripes", difference <= 1e-10, difference=f"{difference:.2g}")
        rises = properties.rises(curve)
        chapter.finding("ruler", rises > 0, rises=rises, n=f"{n:,}", steps=f"{n - 1:,}")


def sources(chapter: Chapter) -> None:
    """The book's table of 60 positions and 32 columns, and the longest wave."""
    table = sinusoidal_table(60, 32, dtype=torch.float64)
    waves = 2 * math.pi / angular_frequencies(32)
    chapter.sources(
        {
            "table": [*table[1, :4].tolist(), *table[59, 6:10].tolist()],
            "norm": table.square().sum(dim=1).mean().item(),
            "wavelengths": waves[3:5].tolist(),
            "similarity": (table[[1, 2, 5, 10, 20, 59]] @ table[0]).tolist(),
            "longest": 2 * math.pi / float(angular_frequencies(512)[-1]),
            "codes": ", ".join(f"{number:03b}" for number in range(8)),
        }
    )


_BROKEN = {"no-cosine": without_cosines, "odd": lone_sine, "single": single_precision}


def main_figure(chapter: Chapter, table: Table, base: float, broken: str) -> None:
    """Draw the table as a heatmap and its claims."""
    names = chapter.words.group("figure")
    n, d = table.shape
    if broken:
        wrong = _BROKEN[broken](n, d, base)
        if broken == "single":  # no colour shows errors of a millionth: draw the errors
            errors = wrong - table
            largest = f"{float(errors.abs().max()):.1e}"
            chapter.heatmap("errors", error_heatmap(errors, names), n=n, d=d, largest=largest)
        else:
            chapter.heatmap("broken-table", plain_heatmap(wrong, names), n=n, d=wrong.shape[1])
        claims(chapter, wrong, base, broken)
        return
    lengths = wavelengths(d, base)
    chapter.heatmap("table", table_heatmap(table, base, names), n=n, d=d, longest=f"{lengths[-1]:,.0f}")
    claims(chapter, table, base, broken)


def gallery_picture() -> Image.Image:
    """A table with the proportions of a card, so that none of it is cut off."""
    return signed_image(sinusoidal_table(40, 64).numpy(), 1.0)
