"""The vision chapter's looks at a whole model: its heads, its positions, the order of patches, its training."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import streamlit as st
import torch

from asking.model_spec import Shipped
from pages.vision_transformer import head_figures as vision_heads
from pages.vision_transformer import patch_figures as vision_patches
from pages.vision_transformer import training_figures as vision_training
from pages.vision_transformer.inputs import Asked
from pages.vision_transformer.map_figures import shuffled_picture
from pages.vision_transformer.parts import ROUNDING, enlarged, place_of
from ui.chapter import Chapter
from ui.controls import escape
from ui.pictures import picture_look, position_table
from viz_core.lessons.vision_transformer.patches import position_similarity
from viz_core.lessons.vision_transformer.permutation import PermutationTest, random_order
from viz_core.maps.distance import uniform_attention_distance
from viz_core.pretrained import available
from viz_core.view.state import ViewState


def heads(chapter: Chapter, asked: Asked, view: ViewState) -> None:
    """Mean attention distance and entropy of every head, against one that looks at everything alike."""
    found, names = asked.found, chapter.words.group("figure")
    measured: dict[str, torch.Tensor] = picture_look(asked.model, asked.picture, "heads")
    even = {
        "distance": uniform_attention_distance(found.grid, asked.facts.patch_size),
        "entropy": math.log2(next(iter(found.trace)).num_keys),
    }
    opened = (view.layer, view.head)
    chapter.text("heads")
    for column, name in zip(st.columns(2), even, strict=True):
        values = measured[name]
        with column:
            figure = vision_heads.by_depth_figure(values.numpy(), even[name], opened, names[f"unit-{name}"], names)
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


def positions(chapter: Chapter, asked: Asked, token: int) -> None:
    """How alike the learned positions are, each patch's with all others."""
    found, names = asked.found, chapter.words.group("figure")
    table = position_table(asked.model, found.grid)
    if table is None:
        chapter.text("no-positions")
        return
    rows, columns = found.grid
    similarity = position_similarity(table, found.grid, num_special=0)
    row, column = place_of(found, token) or (rows // 2, columns // 2)
    place: dict[str, Any] = {"row": row + 1, "column": column + 1}
    chapter.text("positions", count=rows * columns)
    left, right = st.columns(2)
    with left:
        alt = chapter.words("alt.similarity", count=rows * columns)
        st.image(vision_patches.similarity_image(similarity), width="stretch", alt=alt)
        chapter.look_for("similarity")
    with right:
        one = similarity[row, column]
        beside = float(
            torch.stack(
                [one[row, c] for c in (column - 1, column + 1) if 0 <= c < columns] or [one[row, column]]
            ).mean()
        )
        chapter.figure(
            "likeness",
            vision_patches.likeness_figure(one.numpy(), names),
            beside=f"{beside:.2f}",
            least=f"{float(one.min()):.2f}",
            **place,
        )


def permutation(chapter: Chapter, asked: Asked) -> None:
    """The patches in another order: what the model says with its positions and without."""
    found, names = asked.found, chapter.words.group("figure")
    if not found.probabilities:
        chapter.text("no-permutation", model=escape(asked.facts.title))
        return
    seed = int(chapter.controls.number("order", 0, 999, 0))
    test: PermutationTest = picture_look(asked.model, asked.picture, "permutation", seed)
    rows = {
        names["with"]: test.positions,
        names["with-shuffled"]: test.positions_shuffled,
        names["without"]: test.no_positions,
        names["without-shuffled"]: test.no_positions_shuffled,
    }
    labels = asked.facts.labels
    order = (test.positions + test.positions_shuffled + test.no_positions).argsort(descending=True)[:6].tolist()
    chapter.text("permutation")
    left, right = st.columns([1, 2])
    with left:
        shuffled = shuffled_picture(
            found.prepared.seen, asked.facts.patch_size, random_order(math.prod(found.grid), seed)
        )
        st.image(enlarged(shuffled), width="stretch", caption=chapter.words("shuffled"))
    with right:
        chapter.figure(
            "permutation",
            vision_patches.permutation_figure(
                {name: values[order].numpy() for name, values in rows.items()},
                tuple(labels[i] for i in order),
                names,
            ),
            before=labels[int(test.positions.argmax())],
            after=labels[int(test.positions_shuffled.argmax())],
            bag=labels[int(test.no_positions.argmax())],
            change=f"{test.change:.2f}",
        )
    with st.container(horizontal=True, key="claims-permutation"):
        chapter.claim("bag", test.residual, ROUNDING)


def training(chapter: Chapter, asked: Asked) -> None:
    """Curves, scores and the card, all as the training script wrote them."""
    card = next((card for card in available() if asked.model == Shipped(card.name, "classification")), None)
    if card is None:
        chapter.text("not-trained-here", model=escape(asked.facts.title))
        return
    record, names = card.training, chapter.words.group("figure")
    curve, right = record["curve"], card.scores["accuracy"]
    chapter.text(
        "training",
        model=card.name,
        time=f"{record['seconds'] // 60} min",
        device=record["device"],
        accuracy=f"{right:.2f}",
        count=f"{sum(map(sum, record['confusion'])):,}",
    )
    left, other = st.columns(2)
    with left:
        last = curve[-1]
        chapter.figure(
            "curve",
            vision_training.curve_figure(curve, names),
            epochs=f"{last['epoch']:.0f}",
            validation=f"{last['validation_accuracy']:.1f}",
        )
    with other:
        counts = np.array(record["confusion"])
        mistakes = counts - np.diag(np.diag(counts))
        is_, said = divmod(int(mistakes.argmax()), len(counts))
        chapter.figure(
            "confusion",
            vision_training.confusion_figure(counts, asked.facts.labels, names),
            accuracy=f"{right:.2f}",
            real=asked.facts.labels[is_],
            said=asked.facts.labels[said],
            times=int(mistakes.max()),
        )
    with st.expander(chapter.words("card"), icon=":material/description:"):
        st.markdown(card.text)
