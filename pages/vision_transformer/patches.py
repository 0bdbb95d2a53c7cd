"""Patches as vectors and as tokens, and the filters that make one of the other."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st
import torch
import torch.nn.functional as F

from pages.vision_transformer import map_figures, patch_figures
from pages.vision_transformer.inputs import PictureInputs
from pages.vision_transformer.places import ROUNDING, pin_of, place_of
from ui.chapter.chapter import Chapter
from ui.widgets.chart import Point
from viz_core.lessons.vision_transformer.patches import patchify, principal_filters
from viz_core.models.vit import PatchEmbedding
from viz_core.pretrained import Classification

_FILTERS = 28  # as in the paper's figure 7


def patches(chapter: Chapter, picture_inputs: PictureInputs, token: int) -> None:
    """The grid, one patch as the vector it is and the token it becomes, and the filters."""
    found, facts, names = picture_inputs.found, picture_inputs.facts, chapter.words.group("figure")
    rows, columns = found.grid
    row, column = place_of(found, token) or (rows // 2, columns // 2)
    vectors = patchify(found.prepared.pixels, facts.patch_size)[0]
    weight, bias = facts.filters, facts.filter_bias
    matrix = weight.flatten(start_dim=1)
    tokens = vectors @ matrix.T + bias
    convolved = F.conv2d(found.prepared.pixels, weight, bias, stride=facts.patch_size)[0].flatten(start_dim=1).T
    height, width = facts.patch_size
    chapter.text(
        "patches",
        rows=rows,
        columns=columns,
        count=rows * columns,
        height=height,
        width=width,
        channels=weight.shape[1],
        length=vectors.shape[1],
        hiddens=len(weight),
    )
    left, right = st.columns(2)
    place: dict[str, Any] = {"row": row + 1, "column": column + 1}
    with left:
        figure = map_figures.grid_figure(found.prepared.seen, found.grid, (row, column), names)
        chapter.figure("grid", figure, on_click=lambda point: _pin(found, point), rows=rows, columns=columns, **place)
    with right:
        at = row * columns + column
        figure = partial(patch_figures.vector_figure, vectors[at].numpy(), tokens[at].numpy(), names)
        chapter.figure("vector", figure, length=vectors.shape[1], hiddens=len(weight), **place)
    with chapter.claim_row("claims-patches"):
        scale = float(convolved.abs().max())
        chapter.claim("convolution", float((tokens - convolved).abs().max()) / max(scale, 1e-12), ROUNDING)
    chapter.source_card("patches", lambda: PatchEmbedding(96, 16, 512)(torch.ones(4, 3, 96, 96)).shape)
    kind = chapter.controls.choice("filters", ("principal", "first"), "principal")
    count = min(_FILTERS, *matrix.shape)
    shown = principal_filters(weight, count) if kind == "principal" else weight[:count].float()
    st.image(patch_figures.filters_image(shown), width="stretch", alt=chapter.words("alt.filters", count=count))
    chapter.guidance(f"filters-{kind}", count=count, hiddens=len(weight))


def _pin(found: Classification, point: Point) -> None:
    """A click on the grid pins that patch in the view above."""
    st.query_params["pin"] = pin_of(point, found.num_special, found.grid)
