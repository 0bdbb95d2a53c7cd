"""Inside the encoder: every step with this sentence's numbers, and two ways to normalise."""

from __future__ import annotations

from typing import Any

import streamlit as st
import torch

from pages.transformer import figures
from ui.chapter import Chapter
from ui.models import ask, sentence
from ui.translation import Request
from viz_core.lessons.transformer.encoder_walk import encoder_walk
from viz_core.models import anatomy
from viz_core.pretrained import Translation

_BOOK_EXAMPLES = torch.tensor([[1.0, 2.0], [2.0, 3.0]])


def inside_the_encoder(chapter: Chapter, name: str, request: Request, result: Translation) -> None:
    """Every step of the encoder with this sentence's numbers."""
    names = chapter.words.group("figure")
    steps, residuals = ask(sentence(name, request.text, request.beam), encoder_walk)
    chapter.text("inside")
    norms = anatomy.mean_norms(steps)
    by_name = {step.name: norm for step, norm in zip(steps[:3], norms, strict=False)}
    lengths: dict[str, Any] = {name: f"{by_name[name]:.1f}" for name in ("embedding", "scaled", "positioned")}
    figure = figures.depth_figure(steps, names)
    chapter.figure("depth", figure, summary=", ".join(f"{norm:.1f}" for norm in norms), **lengths)
    after = [norm for step, norm in zip(steps, norms, strict=True) if step.name in {"addnorm1", "addnorm2"}]
    ends = {"shortest": f"{min(after):.1f}", "longest": f"{max(after):.1f}"}
    chapter.finding("level", max(after) < 1.5 * min(after), **ends)
    titles = {figures.step_name(step, names): step for step in steps}
    step = titles[chapter.controls.select("step", tuple(titles), next(iter(titles)))]
    chapter.figure(
        "step",
        figures.step_heatmap(step, result.source_tokens, names),
        step=figures.step_name(step, names),
        count=len(result.source_tokens),
    )
    with st.container(horizontal=True, key="claims-inside"):
        chapter.claim("walk", residuals["walk"], 1e-5)
        chapter.claim("twin", residuals["twin"], 1e-6)
    layer, batch = anatomy.layer_norm(_BOOK_EXAMPLES), anatomy.batch_norm(_BOOK_EXAMPLES)
    rows = {"layer_1": layer[0], "layer_2": layer[1], "batch_1": batch[0], "batch_2": batch[1]}
    chapter.text("norms", **{name: ", ".join(f"{v:+.2f}" for v in row.tolist()) for name, row in rows.items()})
