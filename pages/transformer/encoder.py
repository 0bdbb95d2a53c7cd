"""Inside the encoder: every step with this sentence's numbers, and two ways to normalise."""

from __future__ import annotations

from functools import cache
from typing import Any

import streamlit as st

from pages.transformer import figures
from ui.blocks.translation import TranslationInputs
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate, sentence_request, translator
from viz_core.lessons.transformer.book_examples import encoder_shapes, normalised_examples
from viz_core.lessons.transformer.residuals import encoder_walk
from viz_core.models import anatomy
from viz_core.pretrained import Translation


def inside_the_encoder(chapter: Chapter, name: str, request: TranslationInputs, result: Translation) -> None:
    """Every step of the encoder with this sentence's numbers."""
    names = chapter.words.group("figure")
    walk = cache(lambda: evaluate(sentence_request(name, request.text, request.beam), encoder_walk))
    chapter.text("inside")
    chapter.lazy("depth", lambda: _depth(chapter, walk()[0], names), 480)
    ahead = anatomy.step_names(translator(name).model.encoder)
    places = {figures.step_name(*step, names): place for place, step in enumerate(ahead)}
    shown = chapter.controls.select("step", tuple(places), next(iter(places)))
    chapter.figure(
        "step",
        lambda: figures.step_heatmap(walk()[0][places[shown]], result.source_tokens, names),
        height=300,
        step=shown,
        count=len(result.source_tokens),
    )
    with chapter.claim_row("claims-inside"):
        chapter.claim("walk", lambda: walk()[1]["walk"], 1e-5)
        chapter.claim("twin", lambda: walk()[1]["twin"], 1e-6)
    layer, batch = normalised_examples()
    chapter.text("norms")
    chapter.source_card("norms", [*layer.flatten().tolist(), *batch.flatten().tolist()])
    chapter.lazy("shapes", lambda: _shapes(chapter), 110)


def _shapes(chapter: Chapter) -> None:
    """The shapes that the book checks."""
    shapes = encoder_shapes()
    left, right = st.columns(2, gap="large")
    with left:
        chapter.source_card("block", shapes["block"])
    with right:
        chapter.source_card("encoder", shapes["encoder"])


def _depth(chapter: Chapter, steps: tuple[anatomy.Step, ...], names: dict[str, str]) -> None:
    """How long the token vectors are after each step."""
    norms = anatomy.mean_norms(steps)
    by_name = {step.name: norm for step, norm in zip(steps[:3], norms, strict=False)}
    lengths: dict[str, Any] = {name: f"{by_name[name]:.1f}" for name in ("embedding", "scaled", "positioned")}
    figure = figures.depth_figure(steps, names)
    chapter.figure("depth", figure, summary=[f"{norm:.1f}" for norm in norms], **lengths)
