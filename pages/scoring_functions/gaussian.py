"""The Gaussian score as three terms, and which of them change the softmax."""

from __future__ import annotations

from functools import partial

import streamlit as st

from pages.scoring_functions.gaussian_figures import plane_figure, softmax_figure, terms_figure
from ui.chapter.chapter import Chapter
from viz_core.lessons.scoring_functions.gaussian_terms import gaussian_example

ROUNDING = 1e-5  # sums of up to 1,024 terms in float32


def gaussian(chapter: Chapter) -> None:
    """-1/2 ||q - k||^2 as three terms, and which of them change the softmax."""
    controls, names = chapter.controls, chapter.words.group("figure")
    chapter.text("gaussian")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        x = controls.slider("x", -2.0, 2.0, 1.0, 0.1)
        y = controls.slider("y", -2.0, 2.0, 0.5, 0.1)
        lengths = controls.choice("lengths-of-keys", ("free", "one"), "free")
        with controls.more():
            count = int(controls.number("count", 1, 12, 6))
            seed = int(controls.number("places", 0, 999, 6))
    example = gaussian_example(x, y, count, seed, lengths == "one")
    weights = {name: values.numpy() for name, values in example.weights.items()}
    nearest = int(weights["gaussian"].argmax())
    plane, bars = st.columns(2)
    with plane:
        figure = partial(plane_figure, example.query[0].numpy(), example.keys.numpy(), weights["gaussian"], names)
        chapter.figure("plane", figure, count=count, x=_signed(x), y=_signed(y), nearest=nearest + 1)
    with bars:
        figure = partial(terms_figure, example.terms, names)
        chapter.figure("terms", figure, query_term=_signed(float(example.terms.query_term)), count=count)
    chapter.figure("kept", partial(softmax_figure, weights, names), moved=f"{example.dot_change:.3f}")
    with chapter.claim_row("claims-gaussian"):
        chapter.claim("apart", example.term_error, ROUNDING)
        chapter.claim("cancels", example.query_term_change, 1e-6)
        if lengths == "one":
            chapter.claim("one-length", example.dot_change, 1e-6)
        elif count > 1:
            chapter.claim_at_least("free-lengths", example.ratio_spread, 1e-5)


def _signed(value: float) -> str:
    return f"{value:.2f}"
