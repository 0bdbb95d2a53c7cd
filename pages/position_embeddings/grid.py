"""Relative positions on a grid: rows and columns with tables of their own."""

from __future__ import annotations

import streamlit as st

from pages.position_embeddings.grid_figures import grid_figure
from pages.position_embeddings.own_figures import own_figures
from pages.position_embeddings.tokens import ROUNDING, WIDTH, TokenInputs
from ui.chapter.chapter import Chapter
from ui.widgets.chart import Point
from viz_core.lessons.position_embeddings.picture_tokens import picture_tokens
from viz_core.lessons.position_embeddings.scheme_parts import column_major, layer_terms
from viz_core.lessons.position_embeddings.shared_layer import SharedLayer
from viz_core.positional.entry import SchemeSizes


@own_figures("relative-2d")
def relative_2d(chapter: Chapter, inputs: TokenInputs) -> None:
    names, controls = chapter.words.group("figure"), chapter.controls
    sizes = st.columns(4, gap="medium")
    with sizes[0]:
        height = int(controls.slider("grid-height", 1, 8, 4))
    with sizes[1]:
        width = int(controls.slider("grid-width", 1, 8, 6))
    controls.clamp("row", height)
    controls.clamp("column", width)
    with sizes[2]:
        row = int(controls.number("row", 1, height, min(2, height))) - 1
    with sizes[3]:
        column = int(controls.number("column", 1, width, min(3, width))) - 1
    tokens = picture_tokens(height, width, WIDTH)
    heads = inputs.layer.sizes.num_heads
    grid_sizes = SchemeSizes(height * width, WIDTH, heads, height, width, per_head=inputs.layer.sizes.per_head)
    terms, from_module = layer_terms(
        SharedLayer(tokens.X, grid_sizes, seed=inputs.layer.seed), row, column, inputs.head
    )
    broken = chapter.break_it("column-major")
    shown = column_major(terms) if broken else terms

    def draw(setting: str) -> None:
        chapter.figure(
            "grid",
            grid_figure(shown if setting else terms, row, column, names),
            on_click=lambda point: _take_cell(chapter, point),
            height=height,
            width=width,
            row=row + 1,
            column=column + 1,
        )

    chapter.side_by_side(broken, draw)
    with chapter.claims():
        chapter.claim("sum", float((shown.total - from_module).abs().max()), ROUNDING)
    chapter.text(
        "factored",
        height=height,
        width=width,
        vectors=2 * height + 2 * width - 2,
        pairs=(2 * height - 1) * (2 * width - 1),
    )


def _take_cell(chapter: Chapter, point: Point) -> None:
    """A click on a cell makes it the query."""
    row, column, _ = point["customdata"]
    st.session_state[chapter.controls.key("row")] = int(row) + 1
    st.session_state[chapter.controls.key("column")] = int(column) + 1
