"""Claims about the table, and the similarity of its rows."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages.sinusoidal_encoding.figures import MAP_POSITIONS, Table, offset_figure, similarity_heatmap
from ui.chapter.chapter import Chapter
from viz_core.lessons.sinusoidal_encoding import properties

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
