"""Positions of patches: the similarity of the learned embeddings, and predictions for shuffled patches."""

from __future__ import annotations

import math
from typing import Any

import streamlit as st
from torch import Tensor

from pages.vision_transformer import patch_figures
from pages.vision_transformer.inputs import PictureInputs
from pages.vision_transformer.map_figures import shuffled_picture
from pages.vision_transformer.places import ROUNDING, enlarged, place_of
from serving.requests.token_maps import patch_positions
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate, evaluate_model
from ui.text.markdown import escape
from ui.text.model_card import class_label
from viz_core.lessons.vision_transformer.patches import (
    neighbour_similarity,
    patches_shuffled,
    position_similarity,
    random_order,
)
from viz_core.pretrained import Classification


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
        chapter.text("no-permutation", model=escape(picture_inputs.facts.title))
        return
    seed = int(chapter.controls.number("order", 0, 999, 0))
    chapter.text("permutation")
    broken = chapter.break_it("with-positions", part="order")
    chapter.lazy("permutation", lambda: _answers(chapter, picture_inputs, seed), 480)
    with chapter.claim_row("claims-permutation"):
        chapter.claim("bag", lambda: _changed(picture_inputs, seed, broken), ROUNDING)
    if broken:
        st.warning(chapter.words(f"break.{broken}"), icon=":material/build_circle:")


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
                {name: values[order].tolist() for name, values in rows.items()},
                [labels[i] for i in order],
                names,
            ),
            before=labels[int(test.positions.argmax())],
            after=labels[int(test.positions_shuffled.argmax())],
            bag=labels[int(test.no_positions.argmax())],
            change=f"{test.change:.2f}",
        )
