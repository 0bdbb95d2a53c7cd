"""One position scheme at a time, with the figures that only it needs."""

from __future__ import annotations

from functools import partial

import streamlit as st

from pages.position_embeddings import biases, grid, offsets, rotary, tables  # noqa: F401  they register their figures
from pages.position_embeddings.own_figures import OWN_FIGURES
from pages.position_embeddings.tokens import TokenInputs
from ui.blocks.figures import token_map
from ui.chapter.chapter import Chapter
from viz_core.positional.register import BY_NAME


def one_scheme(chapter: Chapter, inputs: TokenInputs) -> None:
    """The chosen scheme: what it does, its own figures, and its map."""
    scheme = BY_NAME[chapter.controls.select("scheme", tuple(BY_NAME), "relative")]
    chapter.text(f"about.{scheme.name}", formula=scheme.formula)
    extends = chapter.words("extends-yes" if scheme.extrapolates else "extends-no")
    st.markdown(f"{extends} {chapter.words(f'extends.{scheme.name}')}")
    if scheme.name in OWN_FIGURES:
        inputs = OWN_FIGURES[scheme.name](chapter, inputs) or inputs
    labels = chapter.words.group("figure")
    chapter.heading("map")
    values = inputs.map_of(scheme)
    chapter.figure(
        "map",
        partial(token_map, values, inputs.tokens.labels, inputs.quantity, labels),
        scheme=chapter.words(f"option.{scheme.name}"),
        shown=labels[inputs.quantity],
        head=inputs.head + 1,
        low=f"{values.min():.2f}",
        high=f"{values.max():.2f}",
    )
