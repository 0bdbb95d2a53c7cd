"""A section of the page: the circuit of induction, from birth to the end of training."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from pages.learning.measured_run import recorded
from serving.requests import circuit_growth as grown
from serving.requests.circuit_growth import NUM_HEADS, Growth
from ui.blocks.two_sentences import path_name
from ui.blocks.two_sentences_figures import circuit_figure
from ui.chapter.chapter import Chapter
from ui.compute.slots import cached
from ui.text.words import load_words
from ui.widgets.figure_style import ACCENT, CATEGORIES, Labels, lay_out

RUN = "repeat-two-layers"


@cached("measuring")
def growth(name: str, seed: int) -> Growth:
    """Train a recorded run again; return how its circuit grew."""
    return grown.circuit_growth(recorded(name, seed).film.plan)


def circuit_growth(chapter: Chapter) -> None:
    """Draw what the circuit keeps alone over the updates, and its paths at the end, once the reader starts it."""
    chapter.text("growth", count=NUM_HEADS)
    if not chapter.controls.toggle("grow"):
        return
    words, found = load_words("two-sentences"), growth(RUN, 0)
    first, second = found.rows
    chapter.text("rows", first=first, second=second, steps=found.steps[-1])
    left, right = st.columns(2, gap="medium")
    random = found.random[-1]
    with left:
        chapter.figure(
            "growth",
            growth_figure(found, chapter.words.group("figure")),
            alone=f"{found.alone[-1]:.0%}",
            mean=f"{random.mean():.0%}",
            sd=f"{100 * random.std(ddof=1):.0f}",
            draws=len(random),
            count=len(found.heads),
        )
    with right:
        edge, share = max(found.edges, key=lambda pair: abs(pair[1]) if pair[0].receiver else -1.0)
        chapter.figure(
            "paths",
            circuit_figure(found.heads, found.edges, words.group("figure")),
            count=len(found.heads),
            path=path_name(words, edge),
            share=f"{share:.0%}",
        )


def growth_figure(found: Growth, labels: Labels) -> go.Figure:
    """Share of the change that the circuit keeps alone, after each update; below, that of random circuits."""
    steps, mean, sd = np.array(found.steps), found.random.mean(axis=1), found.random.std(axis=1, ddof=1)
    figure = go.Figure(
        [
            go.Scatter(
                x=steps,
                y=found.alone.astype(np.float32),
                mode="lines+markers",
                line={"color": ACCENT},
                name=labels["its-circuit"],
            ),
            go.Scatter(
                x=steps,
                y=mean.astype(np.float32),
                error_y={"type": "data", "array": sd.astype(np.float32), "thickness": 1},
                mode="lines+markers",
                line={"color": CATEGORIES[-1], "dash": "dot"},
                name=labels["random-circuits"],
            ),
        ]
    )
    return lay_out(figure, labels["updates"], labels["share-kept"], height=380)
