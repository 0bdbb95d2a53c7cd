"""All heads at a glance: attention distance and entropy."""

from __future__ import annotations

import math

import streamlit as st

from pages.vision_transformer import head_figures
from pages.vision_transformer.inputs import PictureInputs
from serving.requests.token_maps import heads_measured
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate
from ui.text.numbers import series
from viz_core.maps.distance import uniform_attention_distance
from viz_core.view.state import ViewState


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
