"""Erase-then-write beside addition: the same stream, two states."""

from __future__ import annotations

import streamlit as st

from pages.linear_attention.figures import errors_figure, state_figure
from pages.linear_attention.layer import Layer
from ui.chapter.chapter import Chapter
from viz_core.lessons.linear_attention.stream import LETTERS, draw_stream, returned

_ROUNDING = 1e-12


def replace(chapter: Chapter, layer: Layer) -> None:
    """Draw the states of addition and of the delta rule after the chosen token, and the errors of both."""
    orthogonal = chapter.controls.toggle("orthogonal")
    stream, names = draw_stream(layer.seed, orthogonal), chapter.words.group("figure")
    found = {names[rule]: returned(stream, rule, layer.time) for rule in ("sum", "delta")}
    written = LETTERS[stream.written[layer.time]]
    chapter.text("replace", time=layer.time + 1, letter=written)
    added, erased = found.values()
    limit = max(float(each.state.abs().max()) for each in found.values())
    for column, (name, each), figure in zip(st.columns(2), found.items(), ("added", "erased"), strict=True):
        with column:
            st.markdown(f"**{name}**")
            chapter.figure(figure, state_figure(each.state, limit, names, 320, named=False), time=layer.time + 1)
    apart = returned(draw_stream(layer.seed, orthogonal=True), "delta", layer.time)
    with chapter.claim_row("claims-replace"):
        chapter.claim("written", erased.errors[written], _ROUNDING, letter=written)
        chapter.claim("orthogonal", max(apart.errors.values()), _ROUNDING)
    chapter.figure(
        "errors",
        errors_figure({name: list(each.errors.values()) for name, each in found.items()}, list(added.errors), names),
        added=[f"{letter} {error:.2f}" for letter, error in added.errors.items()],
        erased=[f"{letter} {error:.2f}" for letter, error in erased.errors.items()],
    )
