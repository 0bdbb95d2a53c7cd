"""Weights beside contributions: a large weight on a short vector adds little."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
import streamlit as st
from jaxtyping import Float

from ui.blocks.translation import TranslationInputs
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate, sentence_request
from ui.text.head_names import head_name, head_title
from ui.text.markdown import join_sentences
from ui.widgets.figure_style import WEIGHTS_SCALE, escape_labels, lay_out
from viz_core.lessons.transformer.contributions import contributions_of, mark_by_layer
from viz_core.pretrained import Translation

_ROUNDING = 1e-5
_RESTS = 0.01  # of the weight: so much more than it brings, at least


def contributions(
    chapter: Chapter, name: str, request: TranslationInputs, result: Translation, site: str, head: int, as_long: bool
) -> None:
    """Draw the open head's weights and contributions, and the share of both that the end mark gets.

    Args:
        as_long: whether the claim about the mark is broken: as if the vectors of all keys were of one length.
    """
    labels, here = chapter.words.group("figure"), head_title(head_name(site, head))
    translation_request = sentence_request(name, request.text, request.beam)
    found = evaluate(translation_request, contributions_of, site, head)
    rows = result.source_tokens if site.startswith("encoder") else result.target_tokens
    columns = result.decoder_tokens if site.startswith("decoder") and site.endswith("self") else result.source_tokens
    mark = 0 if columns is result.decoder_tokens else len(columns) - 1
    chapter.text("contributions", head=here)
    for side, (kind, values) in zip(
        st.columns(2), {"weights": found.weights, "norms": found.norms}.items(), strict=True
    ):
        with side:
            figure = _map_figure(values, rows, columns, labels["weight" if kind == "weights" else "length-added"])
            chapter.figure(f"contribution-{kind}", figure, head=here)
    weight, norm = found.shares(mark)
    chapter.text("mark", mark=f"`{columns[mark]}`", weight=f"{weight:.0%}", norm=f"{norm:.0%}")
    layers = evaluate(translation_request, mark_by_layer, site, mark, as_long=as_long)
    lines = [
        chapter.words("mark-layer", layer=layer, weight=f"{weight:.0%}", norm=f"{norm:.0%}")
        for layer, (weight, norm) in enumerate(zip(*layers, strict=True), start=1)
    ]
    chapter.text("mark-layers", mark=f"`{columns[mark]}`", layers=join_sentences(lines))
    with st.container(horizontal=True, key="claims-contributions"):
        chapter.claim_at_least("mark", layers.rest, _RESTS, mark=f"`{columns[mark]}`")
        chapter.claim("contributions", found.residual, _ROUNDING)


def _map_figure(
    values: Float[np.ndarray, "queries keys"], rows: Sequence[str], columns: Sequence[str], title: str
) -> go.Figure:
    figure = go.Figure(
        go.Heatmap(
            z=values.astype(np.float32),
            colorscale=WEIGHTS_SCALE,
            zmin=0,
            xgap=1,
            ygap=1,
            hovertemplate="%{z:.3f}<extra></extra>",
            colorbar={"title": title, "thickness": 12},
        )
    )
    ticks = [
        {"tickmode": "array", "tickvals": list(range(len(t))), "ticktext": escape_labels(list(t))}
        for t in (columns, rows)
    ]
    return lay_out(
        figure,
        "",
        "",
        height=max(260, 110 + 26 * len(rows)),
        xaxis={**ticks[0], "tickangle": -45},
        yaxis={**ticks[1], "autorange": "reversed"},
    )
