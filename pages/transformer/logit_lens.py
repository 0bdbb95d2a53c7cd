"""The prediction followed through the decoder's layers, and the logit of a word split among heads and layers."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from pages.transformer.figures import Labels
from ui.blocks.figures import lens_figure
from ui.blocks.translation import TranslationInputs
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate, sentence_request
from ui.text.head_names import head_link, head_place
from ui.text.markdown import escape
from ui.text.words import load_words
from ui.widgets.figure_style import SIGNED_SCALE, lay_out
from viz_core.lessons.transformer.logit_lens import LogitSplit, split_of_the_logits, through_the_layers
from viz_core.pretrained import Translation

_ROUNDING = 1e-4
_MOST_HEADS = 12  # that a picture shows


def lens(chapter: Chapter, name: str, request: TranslationInputs, result: Translation) -> None:
    """Draw each layer's prediction, and what each part adds to the logit of the word written."""
    labels = chapter.words.group("figure")
    translation_request = sentence_request(name, request.text, request.beam)
    seen, split = evaluate(translation_request, through_the_layers), evaluate(translation_request, split_of_the_logits)
    chapter.text("lens")
    steps, last = len(result.target_tokens), len(seen.tokens) - 1
    early, before, after = seen.before_and_after(result.target_tokens)
    final = result.target_tokens
    figure = lens_figure(
        seen.tokens, seen.probabilities, seen.written, final, labels["said"], labels, layers_across=True
    )
    chapter.figure("lens", figure, steps=steps, early=early)
    chapter.finding(
        "early", early > 0, early=early, steps=steps, before=f"{before:.1%}", after=f"{after:.1%}", last=last
    )
    chapter.text("split")
    words = [f"{i + 1} · {token}" for i, token in enumerate(result.target_tokens)]
    step = words.index(chapter.controls.select("word", words, words[0]))
    part, linked = _strongest(split, step, labels)
    chapter.figure(
        "split",
        _split_figure(split, step, labels),
        word=escape(result.target_tokens[step]),
        rival=escape(split.rivals[step]),
        difference=f"{split.differences[step]:.2f}",
        heads=f"{split.of_heads(step):.2f}",
        rest=f"{split.differences[step] - split.of_heads(step):.2f}",
        count=len(split.heads),
        most=_MOST_HEADS,
        part=part,
        linked=linked,
    )
    with st.container(horizontal=True, key="claims-lens"):
        chapter.claim("lens", seen.residual, _ROUNDING)
        chapter.claim("split", split.residual, _ROUNDING)


def _split_figure(split: LogitSplit, step: int, labels: Labels) -> go.Figure:
    """What the strongest heads add to the difference of the two logits, largest first, coloured by sign."""
    heads = split.strongest(step, _MOST_HEADS)
    parts = split.parts[heads, step].astype(np.float32)
    limit = float(np.abs(parts).max())
    figure = go.Figure(
        go.Bar(
            x=parts,
            y=["<br>".join(_name(split, head, labels)) for head in heads],
            orientation="h",
            marker={"color": parts, "colorscale": SIGNED_SCALE, "cmin": -limit, "cmax": limit},
            text=[f"{part:+.2f}".replace("-", "−") for part in parts],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{y}: %{x:+.3f}<extra></extra>",
        )
    )
    low, high = min(0.0, float(parts.min())), max(0.0, float(parts.max()))
    room = 0.35 * (high - low)  # for the numbers beside the bars, also on a phone
    wide = {"range": [low - room if low < 0 else 0.0, high + room if high > 0 else 0.0]}
    return lay_out(figure, labels["added"], "", height=480, xaxis=wide, yaxis={"autorange": "reversed"})


def _strongest(split: LogitSplit, step: int, labels: Labels) -> tuple[str, str]:
    """The name of the head that adds most, and a link to it."""
    most = split.most_for(step)
    kind, layer, head = split.names[most]
    of_kind, place = _name(split, most, labels)
    name = load_words("common")("with-kind", title=place, kind=of_kind)
    group = {"self": "decoder-self"}.get(kind, kind)
    return name, name if layer is None or head is None else head_link(group, layer, head, name)


def _name(split: LogitSplit, part: int, labels: Labels) -> tuple[str, str]:
    """Kind and place of a head: "cross-attention" and "layer 2, head 5"."""
    kind, layer, head = split.names[part]
    return labels[f"decoder.{kind}"], head_place((layer or 0) + 1, (head or 0) + 1)
