"""All schemes side by side, each a small map with a button that opens it."""

from __future__ import annotations

import streamlit as st

from pages.position_embeddings.map_figures import scale_strip, small_maps
from pages.position_embeddings.tokens import WHERE_TRAINED, TokenInputs, link_to
from ui.chapter.chapter import Chapter
from ui.text.markdown import escape
from viz_core.lessons.position_embeddings.order import is_striped
from viz_core.positional.register import SCHEMES


def side_by_side(chapter: Chapter, inputs: TokenInputs) -> None:
    """A small map of every scheme on one colour scale, each with a button that opens it."""
    names = chapter.words.group("figure")
    if inputs.tokens is not inputs.typed:
        chapter.text("first-word", word=escape(inputs.tokens.labels[0]))
    chapter.figure(
        "scale", scale_strip(inputs.quantity, names), bar=False, shown=names[inputs.quantity], count=len(SCHEMES)
    )
    maps = {scheme.name: inputs.map_of(scheme) for scheme in SCHEMES}
    figures = small_maps(maps, inputs.tokens.labels, inputs.quantity, names)
    with st.container(horizontal=True, gap="xsmall", key="schemes"):
        for scheme in SCHEMES:
            values = maps[scheme.name]
            label = chapter.words(f"option.{scheme.name}")
            with st.container(border=True, width=174, gap=None, key=f"card-{scheme.name}"):
                st.button(
                    label,
                    key=f"open-{scheme.name}",
                    type="tertiary",
                    help=chapter.words("open"),
                    on_click=_open,
                    args=(chapter, scheme.name),
                )
                low, high = f"{values.min():.2f}", f"{values.max():.2f}"
                chapter.figure("small", figures[scheme.name], scheme=label, low=low, high=high)
                st.caption(chapter.words(f"enters.{scheme.enters}"))
    chapter.guidance("side-by-side")
    chapter.text("side-by-side", count=len(SCHEMES))
    chapter.text(f"trained-{inputs.trained}", model=inputs.model)
    if inputs.trained != "nothing":
        link_to(WHERE_TRAINED[inputs.trained])
    if len(inputs.tokens.labels) > 1:
        striped = [chapter.words(f"option.{name}") for name, values in maps.items() if is_striped(values)]
        chapter.finding("stripes", bool(striped), striped=striped)
    chapter.text("two-words")


def _open(chapter: Chapter, name: str) -> None:
    """Open a scheme in the section "One scheme, closer"."""
    st.session_state[chapter.controls.key("open-closer")] = True
    st.session_state[chapter.controls.key("scheme")] = name
