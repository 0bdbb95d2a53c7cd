"""The width learned: the error of leaving one out, by width."""

from __future__ import annotations

import streamlit as st

from pages.attention_pooling.kernel_figures import width_figure
from pages.attention_pooling.pooling import LARGEST_WIDTH, STEP, Pooling, kernel_name, labels
from ui.chapter.chapter import Chapter
from ui.compute.slots import cached
from viz_core.lessons.attention_pooling.curve_fit import search_width, true_best_width

_search = cached(message="measuring")(search_width)


def learning(chapter: Chapter, pooling: Pooling) -> None:
    """Draw the leave-one-out error by width, with a button that sets the best width."""
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
        true=f"{true_best_width(search, true_errors):.3f}",
    )
    if unreached:
        first = float(search.widths[~search.errors.isnan()][0])
        st.caption(f":material/info: {chapter.words('learn.unreached', first=f'{first:.2f}')}")
    rounded = min(LARGEST_WIDTH, max(STEP, round(search.best / STEP) * STEP))
    if st.button(
        chapter.words("learn.take", width=f"{rounded:.2f}"),
        key=chapter.controls.key("take"),
        on_click=_take,
        args=(chapter.controls.key("width"), round(rounded, 2)),
        icon=":material/straighten:",
    ):
        st.rerun()  # the main figure too


def _take(key: str, width: float) -> None:
    st.session_state[key] = width
