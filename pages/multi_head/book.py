"""The book's multi-head example: keys that are not the queries, two sentences, and three widths."""

from __future__ import annotations

from functools import partial

import streamlit as st

from pages.multi_head.book_figures import toy_figure
from ui.chapter.chapter import Chapter
from viz_core.lessons.multi_head.book_examples import LENGTHS, book_toy

_WIDEST = 400


def ones(chapter: Chapter) -> None:
    """Show how much the heads of the first sentence differ, with the book's ones and with random inputs."""
    differ = {
        name: float((made[0].amax(dim=0) - made[0].amin(dim=0)).max())
        for name, made in (("ones", book_toy().weights), ("drawn", book_toy(ones=False).weights))
    }
    values = {name: f"{each:.3g}" for name, each in differ.items()}
    chapter.text("measured.ones", share=f"{float(book_toy().weights[0, 0, 0, 0]):.4f}", **values)


def toy(chapter: Chapter) -> None:
    """The book's toy, with inputs of ones or random ones, and a width for each of the three."""
    controls = chapter.controls
    chapter.text("toy")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        content = controls.choice("content", ("ones", "drawn"), "ones")
        q, k, v = (int(controls.number(name, 1, _WIDEST, 100)) for name in ("query-size", "key-size", "value-size"))
    made = book_toy(q, k, v, ones=content == "ones")
    first, second = LENGTHS
    beyond = max(float(made.weights[row, ..., length:].max()) for row, length in enumerate(LENGTHS))
    labels = chapter.words.group("figure")
    figure = partial(toy_figure, made.weights.numpy(), labels)
    count = f"{made.parameters:,}"
    chapter.figure("toy", figure, height=330, first=first, second=second, parameters=count, q=q, k=k, v=v)
    chapter.source_card("shape", made.output.shape)
    with chapter.claim_row("claims-toy"):
        chapter.claim("beyond", beyond, 0.0, first=first, second=second)
    chapter.exercise("ones", reveal=partial(ones, chapter))
