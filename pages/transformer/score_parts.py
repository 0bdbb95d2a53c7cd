"""The scores of the encoder's first layer as four terms: word with word, word with place, and so on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
import streamlit as st
from jaxtyping import Float

from pages.transformer.figures import Labels
from ui.blocks.translation import TranslationInputs
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate, sentence_request
from ui.text.markdown import escape
from ui.widgets.figure_style import SIGNED_SCALE, escape_labels, lay_out
from viz_core.lessons.transformer.score_parts import TERMS, score_parts
from viz_core.pretrained import Translation

_ROUNDING = 1e-5  # of the largest score


def terms_of_scores(chapter: Chapter, name: str, request: TranslationInputs, result: Translation) -> None:
    """Draw the four terms of one head's scores on one scale, with the claim that they add up."""
    heads, labels = next(iter(result.trace)).num_heads, chapter.words.group("figure")
    chapter.text("terms")
    head = int(chapter.controls.slider("terms-head", 1, heads, 1))
    found = evaluate(sentence_request(name, request.text, request.beam), score_parts, head - 1)
    limit, spreads = float(np.abs(found.terms).max()), found.spreads
    for pair in (TERMS[:2], TERMS[2:]):
        for column, term in zip(st.columns(2), pair, strict=True):
            with column:
                title = labels[term]
                figure = _term_figure(found.terms[TERMS.index(term)], limit, result.source_tokens, title, labels)
                chapter.figure("term", figure, term=title, head=head, spread=f"{spreads[term]:.2f}")
    largest = max(spreads, key=lambda term: spreads[term])
    key, rows = found.highest_key(largest)
    chapter.text("terms-largest", head=head, term=labels[largest], spread=f"{spreads[largest]:.2f}")
    queries, highest = len(result.source_tokens), escape(result.source_tokens[key])
    chapter.finding("terms-sink", rows == queries, key=highest, rows=rows, queries=queries)
    with chapter.claim_row("claims-terms"):
        chapter.claim("terms", found.residual, _ROUNDING)
        chapter.claim_at_least("terms-later", found.later, _ROUNDING)


def _term_figure(
    scores: Float[np.ndarray, "n n"], limit: float, tokens: Sequence[str], title: str, labels: Labels
) -> go.Figure:
    figure = go.Figure(
        go.Heatmap(
            z=scores.astype(np.float32),
            zmin=-limit,
            zmax=limit,
            xgap=1,
            ygap=1,
            colorscale=SIGNED_SCALE,
            hovertemplate="%{z:+.3f}<extra></extra>",
            colorbar={"title": labels["score"], "thickness": 12},
        )
    )
    ticks = {"tickmode": "array", "tickvals": list(range(len(tokens))), "ticktext": escape_labels(list(tokens))}
    return lay_out(
        figure,
        title,
        "",
        height=max(260, 130 + 24 * len(tokens)),
        xaxis={**ticks, "tickangle": -45},
        yaxis={**ticks, "autorange": "reversed"},
    )
