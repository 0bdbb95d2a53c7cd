"""Sections on patches, positions, what a token attends to, and all heads at a glance."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import streamlit as st
from PIL import Image
from torch import Tensor

from pages.vision_transformer import figures as head_figures
from pages.vision_transformer import figures as map_figures
from pages.vision_transformer import figures as patch_figures
from pages.vision_transformer.figures import shuffled_picture
from pages.vision_transformer.inputs import (
    ROUNDING,
    PictureInputs,
    enlarged,
    name_of,
    over_grid,
    pin_of,
    place_of,
    strongest,
)
from pages.vision_transformer.prediction import preprocessing
from serving.requests.models import ShippedClassifier
from serving.requests.shipped import ClassificationRequest
from ui.blocks.over_picture import over_picture_figure, tiles, weights_image
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate, evaluate_model
from ui.compute.pictures import sample_picture
from ui.text.markdown import escape, join_sentences
from ui.text.model_card import class_label
from ui.text.numbers import series
from ui.widgets.chart import Point
from ui.widgets.figure_style import escape_labels
from viz_core.lab.pictures import heads_measured, label_relevance, patch_positions, token_in_layer, token_over_patches
from viz_core.lessons.vision_transformer import (
    book_shape,
    columns_divided,
    embed_patches,
    neighbour_similarity,
    patches_shuffled,
    position_similarity,
    principal_filters,
    random_order,
)
from viz_core.maps.measures import uniform_attention_distance
from viz_core.maps.rollout import HeadFusion
from viz_core.pretrained import Classification
from viz_core.view.state import ViewState

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


def positions(chapter: Chapter, picture_inputs: PictureInputs, token: int) -> None:
    """Draw the similarity of each patch's learned position with all others."""
    found = picture_inputs.found
    table = evaluate_model(picture_inputs.request.model, patch_positions, found.grid)
    if table is None:
        chapter.text("no-positions")
        return
    chapter.text("positions", count=math.prod(found.grid))
    chapter.lazy("positions", lambda: _likenesses(chapter, found, table, token), 520)


def _likenesses(chapter: Chapter, found: Classification, table: Tensor, token: int) -> None:
    names = chapter.words.group("figure")
    rows, columns = found.grid
    similarity = position_similarity(table, found.grid, num_special=0)
    row, column = place_of(found, token) or (rows // 2, columns // 2)
    place: dict[str, Any] = {"row": row + 1, "column": column + 1}
    left, right = st.columns(2)
    with left:
        alt = chapter.words("alt.similarity", count=rows * columns)
        st.image(patch_figures.similarity_image(similarity), width="stretch", alt=alt)
        chapter.guidance("similarity")
    with right:
        one = similarity[row, column]
        beside = neighbour_similarity(one, row, column)
        chapter.figure(
            "likeness",
            patch_figures.similarity_figure(one.numpy(), names),
            beside=f"{beside:.2f}",
            least=f"{float(one.min()):.2f}",
            **place,
        )


def permutation(chapter: Chapter, picture_inputs: PictureInputs) -> None:
    """Compare predictions for shuffled patches with and without positions."""
    found = picture_inputs.found
    if not found.probabilities:
        chapter.text("no-labels", model=escape(picture_inputs.facts.title))
        return
    seed = int(chapter.controls.number("order", 0, 999, 0))
    chapter.text("permutation")
    broken = chapter.break_it("with-positions", part="order")
    chapter.lazy("permutation", lambda: _answers(chapter, picture_inputs, seed), 480)
    with chapter.claim_row("claims-permutation"):
        chapter.claim("bag", lambda: _changed(picture_inputs, seed, broken), ROUNDING)


def _changed(picture_inputs: PictureInputs, seed: int, broken: str) -> float:
    """By how much shuffling changes a probability: without positions, or with them where the reader broke it."""
    test = evaluate(picture_inputs.request, patches_shuffled, seed)
    return test.change if broken == "with-positions" else test.residual


def _answers(chapter: Chapter, picture_inputs: PictureInputs, seed: int) -> None:
    """Draw the shuffled picture and the predictions for both."""
    found, names = picture_inputs.found, chapter.words.group("figure")
    test = evaluate(picture_inputs.request, patches_shuffled, seed)
    rows = {
        names["with"]: test.positions,
        names["with-shuffled"]: test.positions_shuffled,
        names["no-positions"]: test.no_positions,
        names["no-positions-shuffled"]: test.no_positions_shuffled,
    }
    labels = [class_label(label) for label in picture_inputs.facts.labels]
    order = (test.positions + test.positions_shuffled + test.no_positions).argsort(descending=True)[:6].tolist()
    left, right = st.columns([1, 2])
    with left:
        shuffled = shuffled_picture(
            found.prepared.seen, picture_inputs.facts.patch_size, random_order(math.prod(found.grid), seed)
        )
        st.image(enlarged(shuffled), width="stretch", caption=chapter.words("shuffled"), alt=chapter.words("shuffled"))
    with right:
        chapter.figure(
            "permutation",
            patch_figures.probabilities_figure(
                {name: values[order].tolist() for name, values in rows.items()}, [labels[i] for i in order], names
            ),
            before=labels[int(test.positions.argmax())],
            after=labels[int(test.positions_shuffled.argmax())],
            bag=labels[int(test.no_positions.argmax())],
            change=f"{test.change:.2f}",
        )


def patch_lab(chapter: Chapter, picture_inputs: PictureInputs, view: ViewState, token: int) -> None:
    """Raw attention, rollout and gradient-weighted relevance of the token that is read, side by side."""
    found, controls = picture_inputs.found, chapter.controls
    with st.container(horizontal=True, vertical_alignment="bottom"):
        fusion: HeadFusion = controls.choice("fusion", ("mean", "max", "min"), "mean")
        discard = controls.slider("discard", 0.0, 0.95, 0.0, 0.05)
        label = ""
        if found.probabilities:
            label = str(controls.select("label", tuple(found.probabilities), found.label, class_label))
    broken = chapter.break_it("columns", part="lab")
    chapter.text("lab", who=name_of(chapter, place_of(found, token)))
    chapter.lazy("lab", lambda: _lab(chapter, picture_inputs, view, token, fusion, discard, label, broken), 410)


def _lab(
    chapter: Chapter,
    picture_inputs: PictureInputs,
    view: ViewState,
    token: int,
    fusion: HeadFusion,
    discard: float,
    label: str,
    broken: str,
) -> None:
    found, names = picture_inputs.found, chapter.words.group("figure")
    read = evaluate(picture_inputs.request, token_in_layer, token, view.layer, fusion, discard)
    rows = {
        chapter.words("title.raw", layer=view.layer + 1, fusion=chapter.words(f"option.{fusion}")): read.raw,
        chapter.words("title.rollout"): read.rollout,
    }
    if label:
        relevance = evaluate(picture_inputs.request, label_relevance, label)
        rows[chapter.words("title.relevance", label=escape_labels([class_label(label)])[0])] = relevance[token]
    maps = {title: over_grid(found, row) for title, row in rows.items()}
    patch = place_of(found, token)
    figure = over_picture_figure(found.prepared.seen, maps, patch, names)
    most = {join_sentences(title.split("<br>")): strongest(chapter, values) for title, values in maps.items()}
    chapter.figure("lab", figure, who=name_of(chapter, patch), most=most)
    if not label:
        chapter.text("no-labels", model=escape(picture_inputs.facts.title))
    with chapter.claim_row("claims-lab"):
        wrong = broken == "columns"
        error = evaluate(picture_inputs.request, columns_divided, "max", discard) if wrong else read.row_error
        chapter.claim("rollout", error, ROUNDING)
    chapter.source_card("rollout", 1 + read.row_error)


def heads(chapter: Chapter, picture_inputs: PictureInputs, view: ViewState) -> None:
    """Draw mean attention distance and entropy of every head, against a head with uniform weights."""
    chapter.text("heads")
    chapter.lazy("heads", lambda: _heads(chapter, picture_inputs, view), 440)


def _heads(chapter: Chapter, picture_inputs: PictureInputs, view: ViewState) -> None:
    found, names = picture_inputs.found, chapter.words.group("figure")
    measured = evaluate(picture_inputs.request, heads_measured)
    even = {
        "distance": uniform_attention_distance(found.grid, picture_inputs.facts.patch_size),
        "entropy": math.log2(next(iter(found.trace)).num_keys),
    }
    opened = (view.layer, view.head)
    for column, name in zip(st.columns(2), even, strict=True):
        values = measured[name]
        with column:
            line = series({names["uniform"]: f"{even[name]:.2f}"}, chapter.words.language)
            labels = names | {"uniform": line}
            figure = head_figures.by_depth_figure(values.numpy(), even[name], opened, names[f"unit-{name}"], labels)
            chapter.figure(
                name,
                figure,
                uniform=f"{even[name]:.2f}",
                value=f"{float(values[opened]):.2f}",
                layer=view.layer + 1,
                head=view.head + 1,
                first=f"{float(values[0].mean()):.2f}",
                last=f"{float(values[-1].mean()):.2f}",
            )


def gallery_picture() -> Image.Image:
    """The class token's attention on a drawn boot, all heads of three layers."""
    boot = ClassificationRequest(ShippedClassifier("vit-fashion-mnist"), sample_picture("ankle-boot"))
    maps = evaluate(boot, token_over_patches, 0)[1:4].flatten(0, 1)
    return weights_image(tiles(maps / maps.amax(dim=(1, 2), keepdim=True), columns=6).numpy(), root=False)
