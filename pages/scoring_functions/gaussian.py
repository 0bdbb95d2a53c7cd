"""The Gaussian score taken apart: three terms, and what softmax keeps of them."""

from __future__ import annotations

from functools import partial

import streamlit as st
import torch

from pages.scoring_functions.gaussian_figures import kept_figure, plane_figure, terms_figure
from pages.scoring_functions.scaling import signed
from ui.chapter.chapter import Chapter
from viz_core.lessons.scoring_functions.gaussian_terms import gaussian_scores, gaussian_terms, to_one_length

ROUNDING = 1e-5  # sums of up to 1,024 terms in float32


def gaussian(chapter: Chapter) -> None:
    """-1/2 ||q - k||^2 in three terms, and what softmax keeps of them."""
    controls, names = chapter.controls, chapter.words.group("figure")
    chapter.text("gaussian")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        x = controls.slider("x", -2.0, 2.0, 1.0, 0.1)
        y = controls.slider("y", -2.0, 2.0, 0.5, 0.1)
        lengths = controls.choice("lengths-of-keys", ("free", "one"), "free")
        with controls.more():
            count = int(controls.number("count", 1, 12, 6))
            seed = int(controls.number("places", 0, 999, 6))
    query = torch.tensor([[x, y]])
    keys = torch.randn(count, 2, generator=torch.Generator().manual_seed(seed)).clamp(-3, 3)
    keys = to_one_length(keys) if lengths == "one" else keys
    terms = gaussian_terms(query, keys)
    weights = {
        "gaussian": torch.softmax(gaussian_scores(query, keys), dim=-1)[0],
        "without-query": torch.softmax(terms.product + terms.key_term, dim=-1)[0],
        "dot": torch.softmax(terms.product, dim=-1)[0],
    }
    nearest = int(weights["gaussian"].argmax())
    plane, bars = st.columns(2)
    with plane:
        figure = partial(plane_figure, query[0].numpy(), keys.numpy(), weights["gaussian"].numpy(), names)
        chapter.figure("plane", figure, count=count, x=signed(x), y=signed(y), nearest=nearest + 1)
    with bars:
        figure = partial(terms_figure, terms, names)
        chapter.figure("terms", figure, query_term=signed(float(terms.query_term)), count=count)
    kept = {name: values.numpy() for name, values in weights.items()}
    moved = float((weights["gaussian"] - weights["dot"]).abs().max())
    chapter.figure("kept", partial(kept_figure, kept, names), moved=f"{moved:.3f}")
    chapter.finding("kept", moved >= 5e-4)  # as far as it is written
    with chapter.claim_row("claims-gaussian"):
        chapter.claim("apart", float((terms.total() - gaussian_scores(query, keys)).abs().max()), ROUNDING)
        gone = float((weights["gaussian"] - weights["without-query"]).abs().max())
        chapter.claim("cancels", gone, 1e-6)
        if lengths == "one":
            chapter.claim("one-length", moved, 1e-6)
        elif count > 1:
            ratios = (weights["gaussian"] / weights["dot"]).log()
            chapter.claim_at_least("free-lengths", float(ratios.max() - ratios.min()), 1e-5)
