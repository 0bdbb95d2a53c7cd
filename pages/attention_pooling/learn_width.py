"""The width learned: the error of leaving one out, by width."""

from __future__ import annotations

import streamlit as st
import torch
from torch import Tensor

from pages.attention_pooling.kernel_figures import width_figure
from pages.attention_pooling.pooling import CURVE_QUERIES, LARGEST_WIDTH, STEP, Pooling, kernel_name, labels
from ui.chapter.chapter import Chapter
from ui.compute.slots import cached
from viz_core.attention.kernel_pooling import nadaraya_watson
from viz_core.attention.kernels import KERNELS, with_width
from viz_core.lessons.attention_pooling.kernel_width import WidthSearch, learn_width
from viz_core.lessons.attention_pooling.noisy_points import mean_squared_distance, noisy_points

_TRIED = torch.logspace(-1.7, 1, 55, dtype=torch.float64)  # widths from 0.02 to 10


def learning(chapter: Chapter, pooling: Pooling) -> None:
    """The leave-one-out error by width, its minimum, and a button that takes it."""
    if pooling.kernel == "constant":
        chapter.text("learn.constant")
        return
    search, true_errors = _search(pooling.kernel, pooling.n, pooling.noise, pooling.seed)
    chapter.text("learn", n=pooling.n)
    unreached = int(search.errors.isnan().sum())
    chapter.figure(
        "learn",
        lambda: width_figure(search, true_errors, pooling.width, labels(chapter)),
        best=f"{search.best:.3f}",
        error=f"{search.error:.4f}",
        kernel=kernel_name(chapter, pooling.kernel),
        true=f"{_true_best(search, true_errors):.3f}",
    )
    if unreached:
        first = float(search.widths[~search.errors.isnan()][0])
        st.caption(f":material/info: {chapter.words('learn.unreached', first=f'{first:.2f}')}")
    rounded = min(LARGEST_WIDTH, max(STEP, round(search.best / STEP) * STEP))
    st.button(
        chapter.words("learn.take", width=f"{rounded:.2f}"),
        key=chapter.controls.key("take"),
        on_click=_take,
        args=(chapter.controls.key("width"), round(rounded, 2)),
        icon=":material/straighten:",
    )


def _take(key: str, width: float) -> None:
    st.session_state[key] = width


@cached(message="measuring")
def _search(kernel: str, n: int, noise: float, seed: int) -> tuple[WidthSearch, Tensor]:
    """The search, and for each width it tried the error against the truth."""
    x, y = noisy_points(n, noise, seed)
    search = learn_width(x, y, KERNELS[kernel], _TRIED)
    fits = [nadaraya_watson(x, y, CURVE_QUERIES, with_width(KERNELS[kernel], float(width)))[0] for width in _TRIED]
    return search, torch.tensor([mean_squared_distance(fit, CURVE_QUERIES) for fit in fits], dtype=torch.float64)


def _true_best(search: WidthSearch, true_errors: Tensor) -> float:
    return float(search.widths[true_errors.nan_to_num(torch.inf).argmin()])
