"""Patches as vectors and as tokens, and the filters of the embedding."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from pages.vision_transformer import map_figures, patch_figures
from pages.vision_transformer.inputs import PictureInputs
from pages.vision_transformer.places import ROUNDING, pin_of, place_of
from pages.vision_transformer.prediction import preprocessing
from ui.chapter.chapter import Chapter
from ui.widgets.chart import Point
from viz_core.lessons.vision_transformer.patches import book_shape, embed_patches, principal_filters
from viz_core.pretrained import Classification

_FILTERS = 28  # as in the paper's figure 7
_PINNED = "vt-pinned"  # in the session, until the page has run


def patches(chapter: Chapter, picture_inputs: PictureInputs, token: int) -> None:
    """The grid, one patch as the vector it is and the token it becomes, and the filters."""
    if st.session_state.pop(_PINNED, False):
        st.rerun()
    found, facts, names = picture_inputs.found, picture_inputs.facts, chapter.words.group("figure")
    rows, columns = found.grid
    row, column = place_of(found, token) or (rows // 2, columns // 2)
    embedded = embed_patches(found.prepared.pixels, facts.filters, facts.filter_bias)
    vectors, tokens, hiddens = embedded.vectors, embedded.tokens, len(facts.filters)
    height, width = facts.patch_size
    chapter.text(
        "patches",
        rows=rows,
        columns=columns,
        count=rows * columns,
        height=height,
        width=width,
        channels=facts.filters.shape[1],
        length=vectors.shape[1],
        hiddens=hiddens,
    )
    preprocessing(chapter, picture_inputs)
    left, right = st.columns(2)
    place: dict[str, Any] = {"row": row + 1, "column": column + 1}
    with left:
        figure = map_figures.grid_figure(found.prepared.seen, found.grid, (row, column), names)
        chapter.figure("grid", figure, on_click=lambda point: _pin(found, point), rows=rows, columns=columns, **place)
    with right:
        at = row * columns + column
        figure = partial(patch_figures.vector_figure, vectors[at].numpy(), tokens[at].numpy(), names)
        chapter.figure("vector", figure, length=vectors.shape[1], hiddens=hiddens, **place)
    with chapter.claim_row("claims-patches"):
        chapter.claim("convolution", embedded.error, ROUNDING)
    chapter.source_card("patches", book_shape)
    count = min(_FILTERS, hiddens, vectors.shape[1])
    picture = patch_figures.filters_image(principal_filters(facts.filters, count))
    st.image(picture, width="stretch", alt=chapter.words("alt.filters", count=count))
    chapter.guidance("filters", count=count, hiddens=hiddens)


def _pin(found: Classification, point: Point) -> None:
    """A click on the grid pins that patch in the view above, which this section's own run does not draw."""
    st.query_params["pin"] = pin_of(point, found.num_special, found.grid)
    st.session_state[_PINNED] = True
