"""The vision chapter's parts: what the model sees, what it says, and the looks further into it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import streamlit as st
import torch.nn.functional as F
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from pages.vision_transformer import map_figures as picture_maps
from pages.vision_transformer import patch_figures as vision_patches
from pages.vision_transformer.inputs import Asked
from ui.chapter import Chapter
from ui.controls import escape
from ui.pictures import picture_look
from viz_core.figures.bars import bars_figure
from viz_core.figures.raster import signed_image
from viz_core.figures.style import escape_labels
from viz_core.images.opening import preview
from viz_core.lessons.vision_transformer.looks import TokenLook
from viz_core.lessons.vision_transformer.patches import patchify, principal_filters
from viz_core.maps.rollout import HeadFusion
from viz_core.pretrained import Classification
from viz_core.view.state import ViewState

ROUNDING = 1e-5  # what float32 may lose in sums of a few hundred terms
_SHOWN_LABELS = 10
_THUMB = 156  # pixels; three side by side, two on a phone
_FILTERS = 28  # as in the paper's figure 7


def token_read(view: ViewState) -> int:
    """The token whose attention is read: the first pinned query, else the class token."""
    return next((pin.index for pin in view.pins if pin.axis == "query"), 0)


def seen_and_said(chapter: Chapter, asked: Asked) -> None:
    """What the model sees, and what it says."""
    left, right = st.columns([3, 2], gap="large")
    with left:
        preprocessing(chapter, asked)
    with right:
        prediction(chapter, asked)


def place_of(found: Classification, token: int) -> tuple[int, int] | None:
    """Row and column of a patch, from 0; None for the class token and its like."""
    patch = token - found.num_special
    return divmod(patch, found.grid[1]) if patch >= 0 else None


def preprocessing(chapter: Chapter, asked: Asked) -> None:
    """The picture as it was brought, as the model sees it, and as the numbers it gets."""
    prepared, words = asked.found.prepared, chapter.words
    image = asked.image
    steps = ", ".join(words(f"step.{step}") for step in prepared.steps) or words("step.none")
    pixels = prepared.pixels[0]
    low, high = float(pixels.min()), float(pixels.max())
    numbers = signed_image(pixels.mean(dim=0).numpy(), max(abs(low), abs(high), 1e-6))
    size, seen_size = f"{image.width:,} × {image.height:,}", f"{prepared.seen.width} × {prepared.seen.height}"
    with st.container(horizontal=True, gap="small"):
        st.image(preview(image), width=_THUMB, caption=words("brought", size=size))
        st.image(enlarged(prepared.seen), width=_THUMB, caption=words("seen", size=seen_size, steps=steps))
        st.image(numbers, width=_THUMB, caption=words("numbers", low=f"{low:.2f}", high=f"{high:.2f}"))


def prediction(chapter: Chapter, asked: Asked) -> None:
    """The likeliest labels, each with its probability."""
    found, names = asked.found, chapter.words.group("figure")
    if not found.probabilities:
        chapter.text("no-labels", model=escape(asked.facts.title))
        return
    st.markdown(
        chapter.words("answer", label=escape(found.label), percent=f"{100 * found.probabilities[found.label]:.1f}")
    )
    top = list(found.probabilities.items())[:_SHOWN_LABELS]
    chapter.figure(
        "labels",
        bars_figure([n for n, _ in top], [p for _, p in top], found.label, names["class"], names),
        label=found.label,
        probability=f"{found.probabilities[found.label]:.2f}",
    )


def patches(chapter: Chapter, asked: Asked, token: int) -> None:
    """The grid, one patch as the vector it is and the token it becomes, and the filters."""
    found, facts, names = asked.found, asked.facts, chapter.words.group("figure")
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
        figure = picture_maps.grid_figure(found.prepared.seen, found.grid, (row, column), names)
        chapter.figure("grid", figure, on_select=lambda: _read_patch(found), rows=rows, columns=columns, **place)
    with right:
        at = row * columns + column
        figure = vision_patches.vector_figure(vectors[at].numpy(), tokens[at].numpy(), names)
        chapter.figure("vector", figure, length=vectors.shape[1], hiddens=len(weight), **place)
    with st.container(horizontal=True, key="claims-patches"):
        scale = float(convolved.abs().max())
        chapter.claim("convolution", float((tokens - convolved).abs().max()) / max(scale, 1e-12), ROUNDING)
    kind = chapter.controls.choice("filters", ("principal", "first"), "principal")
    count = min(_FILTERS, *matrix.shape)
    shown = principal_filters(weight, count) if kind == "principal" else weight[:count].float()
    st.image(vision_patches.filters_image(shown), width="stretch", alt=chapter.words("alt.filters", count=count))
    chapter.look_for(f"filters-{kind}", count=count, hiddens=len(weight))


def patch_lab(chapter: Chapter, asked: Asked, view: ViewState, token: int) -> None:
    """Raw attention, rollout and gradient-weighted relevance of the token that is read, side by side."""
    found, controls, names = asked.found, chapter.controls, chapter.words.group("figure")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        fusion: HeadFusion = controls.choice("fusion", ("mean", "max", "min"), "mean")
        discard = controls.slider("discard", 0.0, 0.95, 0.0, 0.05)
        label = ""
        if found.probabilities:
            label = str(controls.select("label", tuple(found.probabilities), found.label))
    look: TokenLook = picture_look(asked.model, asked.picture, "token", token, view.layer, fusion, discard)
    rows = {
        chapter.words("title.raw", layer=view.layer + 1, fusion=chapter.words(f"option.{fusion}")): look.raw,
        chapter.words("title.rollout"): look.rollout,
    }
    if label:
        relevance = picture_look(asked.model, asked.picture, "relevance", label)
        rows[chapter.words("title.relevance", label=escape_labels([label])[0])] = relevance[token]
    maps = {title: over_grid(found, row) for title, row in rows.items()}
    patch = place_of(found, token)
    chapter.text("lab", who=_name(chapter, patch))
    figure = picture_maps.over_picture_figure(found.prepared.seen, maps, patch, names)
    most = "; ".join(f"{title}: {_strongest(chapter, values)}" for title, values in maps.items())
    chapter.figure("lab", figure, who=_name(chapter, patch), most=most)
    if not label:
        chapter.text("no-relevance")
    with st.container(horizontal=True, key="claims-lab"):
        chapter.claim("rollout", look.row_error, ROUNDING)


def depth(chapter: Chapter, asked: Asked, token: int) -> None:
    """What the token looks at, and what has reached it, layer after layer."""
    found, names = asked.found, chapter.words.group("figure")
    attended, reached = picture_look(asked.model, asked.picture, "depth", token)
    patch = place_of(found, token)
    sides = {chapter.words("title.attention"): attended, chapter.words("title.reached"): reached}
    stacks = {title: np.stack([over_grid(found, row) for row in rows]) for title, rows in sides.items()}
    chapter.text("depth", who=_name(chapter, patch), layers=len(attended))
    most = ", ".join(_strongest(chapter, values) for values in next(iter(stacks.values())))
    figure = picture_maps.depth_figure(found.prepared.seen, stacks, patch, names)
    chapter.figure("depth", figure, who=_name(chapter, patch), layers=len(attended), most=most)


def enlarged(image: Image.Image) -> Image.Image:
    """A small picture with its pixels as crisp squares."""
    larger = max(1, 280 // max(image.size))
    return image.resize((image.width * larger, image.height * larger), Image.Resampling.NEAREST)


def over_grid(found: Classification, row: Float[Tensor, "tokens"]) -> Float[np.ndarray, "rows columns"]:
    """One token's row over the patches; what goes to the class token is left out, and nothing is divided anew."""
    return row[found.num_special :].reshape(found.grid).numpy()


def _read_patch(found: Classification) -> None:
    """A click on the grid pins that patch in the view above."""
    points = st.session_state["figure-grid"].selection.points
    if points:
        st.query_params["pin"] = pin_of(points[0], found.num_special, found.grid)


def pin_of(point: Mapping[str, float], num_special: int, grid: tuple[int, int]) -> str:
    """The pin of a patch that was clicked, as it stands in the address: points count rows and columns from 1."""
    return f"q{num_special + (int(point['y']) - 1) * grid[1] + int(point['x']) - 1}"


def _name(chapter: Chapter, patch: tuple[int, int] | None) -> str:
    if patch is None:
        return chapter.words("class-token")
    return chapter.words("patch", row=patch[0] + 1, column=patch[1] + 1)


def _strongest(chapter: Chapter, values: Float[np.ndarray, "rows columns"]) -> str:
    """The patch with the largest value, in words."""
    row, column = divmod(int(values.argmax()), values.shape[1])
    return chapter.words("strongest", row=row + 1, column=column + 1, value=f"{values.max():.3f}")
