"""Kernels and widths side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import streamlit as st
import torch

from pages.attention_pooling.fit_figures import panels_figure
from pages.attention_pooling.kernel_figures import kernels_figure
from pages.attention_pooling.pooling import CURVE_QUERIES, MAP_QUERIES, Pooling, kernel_name, labels
from ui.chapter.chapter import Chapter
from viz_core.attention.kernel_pooling import KERNELS, epanechnikov, triangular
from viz_core.lessons.attention_pooling.curve_fit import Fit

BOOK_WIDTHS = (0.1, 0.2, 0.5, 1.0)


def kernels(chapter: Chapter, pooling: Pooling) -> None:
    """Draw every kernel at the reader's width."""
    chapter.figure(
        "kernels",
        partial(kernels_figure, pooling.kernel, pooling.width, labels(chapter)),
        width=f"{pooling.width:g}",
        chosen=kernel_name(chapter, pooling.kernel),
    )
    half = torch.tensor(0.5)
    chapter.source_card("kernel", float(triangular(half)), own=f"{float(epanechnikov(half)):.4f}")


def widths(chapter: Chapter, pooling: Pooling) -> None:
    """The book's four widths side by side."""
    if pooling.kernel == "constant":
        st.caption(chapter.words("constant"))
    titled = {
        chapter.words("figure.width-title", width=f"{width:g}"): replace(pooling, width=width) for width in BOOK_WIDTHS
    }
    fits = [each.fit(CURVE_QUERIES, name) for name, each in titled.items()]
    chapter.figure(
        "widths",
        lambda: panels_figure(fits, _maps(titled), labels(chapter)),
        kernel=kernel_name(chapter, pooling.kernel),
        errors=_errors(chapter, fits),
    )


def every_kernel(chapter: Chapter, pooling: Pooling) -> None:
    """All kernels at the reader's width side by side."""
    titled = {kernel_name(chapter, name): _with(pooling, name) for name in KERNELS}
    fits = {name: each.fit(CURVE_QUERIES, name) for name, each in titled.items()}
    chapter.figure(
        "every-kernel",
        lambda: panels_figure(list(fits.values()), _maps(titled), labels(chapter)),
        width=f"{pooling.width:g}",
        errors=_errors(chapter, list(fits.values())),
        mean=f"{float(fits[kernel_name(chapter, 'constant')].y_train.mean()):.3f}",
    )


def _with(pooling: Pooling, kernel: str) -> Pooling:
    return replace(pooling, kernel=kernel)


def _maps(titled: dict[str, Pooling]) -> list[Fit]:
    return [each.fit(MAP_QUERIES, name) for name, each in titled.items()]


def _errors(chapter: Chapter, fits: Sequence[Fit]) -> dict[str, str]:
    none = chapter.words("no-answer")
    return {fit.name: none if math.isnan(fit.error) else f"{fit.error:.3f}" for fit in fits}
