"""One position scheme at a time, with the figures that only it needs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from pages.position_embeddings.biases import alibi, t5
from pages.position_embeddings.grid import relative_2d
from pages.position_embeddings.offsets import clipped, relative, shaw
from pages.position_embeddings.rotary import rotary
from pages.position_embeddings.tables import absolute, learned, sinusoidal
from pages.position_embeddings.tokens import Asked
from ui.chapter.chapter import Chapter
from viz_core.figures.token_map import token_map
from viz_core.lessons.position_embeddings.schemes import BY_NAME, SCHEMES


def one_scheme(chapter: Chapter, asked: Asked) -> None:
    """A scheme of the reader's choice: what it does, its map, whether it goes on, and figures of its own."""
    names = tuple(scheme.name for scheme in SCHEMES)
    scheme = BY_NAME[chapter.controls.select("scheme", names, "relative")]
    chapter.text(f"about.{scheme.name}")
    extends = chapter.words("extends-yes" if scheme.extends else "extends-no")
    st.markdown(f"{extends} {chapter.words(f'extends.{scheme.name}')}")
    _OWN_FIGURES[scheme.name](chapter, asked)
    labels = chapter.words.group("figure")
    chapter.heading("map")
    if scheme.name == "shaw":
        asked = clipped(asked, int(st.session_state[chapter.controls.key("k")]))
    values = asked.shown_map(scheme)
    chapter.figure(
        "map",
        partial(token_map, values, asked.tokens.labels, asked.shown, labels),
        scheme=chapter.words(f"option.{scheme.name}"),
        shown=labels[asked.shown],
        head=asked.head + 1,
        low=f"{values.min():.2f}",
        high=f"{values.max():.2f}",
    )


def _none(chapter: Chapter, asked: Asked) -> None:
    """Nothing of its own: its map is the whole story."""


_OWN_FIGURES: dict[str, Callable[[Chapter, Asked], None]] = {
    "none": _none,
    "sinusoidal": sinusoidal,
    "learned": learned,
    "absolute": absolute,
    "relative": relative,
    "shaw": shaw,
    "relative-2d": relative_2d,
    "rotary": rotary,
    "alibi": alibi,
    "t5": t5,
}
