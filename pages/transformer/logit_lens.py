"""The prediction followed through the decoder's layers, and the logit of a word split among heads and layers."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from pages.transformer.figures import Labels
from ui.blocks.translation import TranslationInputs
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate, sentence_request
from ui.text.head_link import head_link
from ui.text.markdown import escape
from viz_core.figures.lens import lens_figure
from viz_core.figures.style import SIGNED_SCALE, lay_out
from viz_core.lessons.transformer.logit_lens import LogitSplit, split_of_the_logits, through_the_layers
from viz_core.pretrained import Translation

_ROUNDING = 1e-4


def lens(chapter: Chapter, name: str, request: TranslationInputs, result: Translation) -> None:
    """Draw each layer's prediction, and what each part adds to the logit of the word written."""
    labels = chapter.words.group("figure")
    translation_request = sentence_request(name, request.text, request.beam)
    seen, split = evaluate(translation_request, through_the_layers), evaluate(translation_request, split_of_the_logits)
    chapter.text("lens")
    first = [next(i for i, row in enumerate(seen.tokens) if row[j] == t) for j, t in enumerate(result.target_tokens)]
    early = sum(layer < len(seen.tokens) - 1 for layer in first)
    figure = lens_figure(seen.tokens, seen.probabilities, seen.written, result.target_tokens, labels["said"], labels)
    chapter.figure("lens", figure, steps=len(result.target_tokens), early=early)
    chapter.text("split")
    steps = [f"{i + 1} · {token}" for i, token in enumerate(result.target_tokens)]
    step = steps.index(chapter.controls.select("word", steps, steps[0]))
    part, linked = _strongest(split, step, labels)
    chapter.figure(
        "split",
        _split_figure(split, step, labels),
        word=escape(steps[step]),
        logit=f"{split.logits[step]:.2f}",
        part=part,
        linked=linked,
    )
    with st.container(horizontal=True, key="claims-lens"):
        chapter.claim("lens", seen.residual, _ROUNDING)
        chapter.claim("split", split.residual, _ROUNDING)


def _split_figure(split: LogitSplit, step: int, labels: Labels) -> go.Figure:
    """What each part adds to the logit, largest first, coloured by sign."""
    order = np.argsort(-split.parts[:, step], kind="stable")
    parts, names = split.parts[order, step].astype(np.float32), np.array(_names(split, labels))[order].tolist()
    limit = float(np.abs(parts).max())
    figure = go.Figure(
        go.Bar(
            x=names,
            y=parts,
            marker={"color": parts, "colorscale": SIGNED_SCALE, "cmin": -limit, "cmax": limit},
            hovertemplate="%{x}: %{y:+.3f}<extra></extra>",
        )
    )
    return lay_out(figure, labels["part"], labels["added"], height=420, xaxis={"tickangle": -60})


def _strongest(split: LogitSplit, step: int, labels: Labels) -> tuple[str, str]:
    """The name of the part that adds most, biases excluded, and a link to it if it is a head."""
    parts = [
        -np.inf if name[0] == "constant" else part for name, part in zip(split.names, split.parts[:, step], strict=True)
    ]
    most = int(np.argmax(parts))
    (kind, layer, head), part = split.names[most], _names(split, labels)[most]
    group = {"self": "decoder-self"}.get(kind, kind)
    return part, part if layer is None or head is None else head_link(group, layer, head, part)


def _names(split: LogitSplit, labels: Labels) -> list[str]:
    """ "2 · cross-attention 5": layer, kind and head, from 1; what has no layer by its kind alone."""
    kinds = {"constant": "biases", "embedding": "input", "self": "decoder.self", "cross": "decoder.cross", "ffn": "ffn"}
    found = []
    for kind, layer, head in split.names:
        place = "" if layer is None else f"{layer + 1} · "
        found.append(f"{place}{labels[kinds[kind]]}{'' if head is None else f' {head + 1}'}")
    return found
