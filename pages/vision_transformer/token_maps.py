"""What one token attends to: in a layer, through all of them, and for a label."""

from __future__ import annotations

import numpy as np
import streamlit as st
from jaxtyping import Float

from pages.vision_transformer.inputs import PictureInputs
from pages.vision_transformer.places import ROUNDING, name_of, over_grid, place_of
from serving.requests.token_maps import label_relevance, token_in_layer
from ui.blocks.over_picture import over_picture_figure
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate
from ui.text.markdown import join_sentences
from ui.text.model_card import class_label
from ui.widgets.figure_style import escape_labels
from viz_core.lessons.vision_transformer.broken import columns_divided
from viz_core.maps.rollout import HeadFusion
from viz_core.view.state import ViewState


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
    if broken:
        st.warning(chapter.words(f"break.{broken}"), icon=":material/build_circle:")
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
    most = {join_sentences(title.split("<br>")): _strongest(chapter, values) for title, values in maps.items()}
    chapter.figure("lab", figure, who=name_of(chapter, patch), most=most)
    if not label:
        chapter.text("no-relevance")
    with chapter.claim_row("claims-lab"):
        wrong = broken == "columns"
        error = evaluate(picture_inputs.request, columns_divided, "max", discard) if wrong else read.row_error
        chapter.claim("rollout", error, ROUNDING)
    chapter.source_card("rollout", 1 + read.row_error)


def _strongest(chapter: Chapter, values: Float[np.ndarray, "rows columns"]) -> str:
    """The patch with the largest value, in words."""
    row, column = divmod(int(values.argmax()), values.shape[1])
    return chapter.words("strongest", row=row + 1, column=column + 1, value=f"{values.max():.3f}")
