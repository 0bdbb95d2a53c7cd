"""Kernels and widths side by side."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from pages.attention_pooling.fit_figures import Fit, panels_figure
from pages.attention_pooling.kernel_figures import kernels_figure
from pages.attention_pooling.pooling import MAP_QUERIES, Pooling, kernel_name, labels
from ui.chapter import Chapter
from viz_core.attention.kernels import KERNELS

BOOK_WIDTHS = (0.1, 0.2, 0.5, 1.0)


def kernels(chapter: Chapter, pooling: Pooling) -> None:
    """Every kernel at the reader's width."""
    chapter.figure(
        "kernels",
        kernels_figure(KERNELS, pooling.kernel, pooling.width, labels(chapter)),
        width=f"{pooling.width:g}",
        chosen=kernel_name(chapter, pooling.kernel),
    )


def widths(chapter: Chapter, pooling: Pooling) -> None:
    """The book's four widths side by side."""
    if pooling.kernel == "constant":
        st.caption(chapter.words("constant"))
    title = chapter.words("figure.width-title")
    fits = [replace(pooling, width=width).fit(MAP_QUERIES, title.format(width=f"{width:g}")) for width in BOOK_WIDTHS]
    chapter.figure(
        "widths",
        panels_figure(fits, labels(chapter)),
        kernel=kernel_name(chapter, pooling.kernel),
        errors=", ".join(_error(chapter, fit) for fit in fits),
    )


def every_kernel(chapter: Chapter, pooling: Pooling) -> None:
    """All kernels at the reader's width side by side."""
    fits = [replace(pooling, kernel=name).fit(MAP_QUERIES, kernel_name(chapter, name)) for name in KERNELS]
    chapter.figure(
        "every-kernel",
        panels_figure(fits, labels(chapter)),
        width=f"{pooling.width:g}",
        errors=", ".join(_error(chapter, fit) for fit in fits),
    )


def _error(chapter: Chapter, fit: Fit) -> str:
    error = (fit.y_hat - fit.truth).square().nanmean()
    return chapter.words("error-of", fit=fit.name, error=f"{float(error):.3f}")
