"""The way from two words to one number, and from the numbers of a row to its weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st
from jaxtyping import Float
from plotly.subplots import make_subplots

from ui.blocks.sentence import or_explain, sentence_input
from ui.chapter.chapter import Chapter
from ui.compute.models import translator
from ui.text.markdown import escape
from viz_core.figures.style import ACCENT, KEYS, QUERIES, escape_labels, lay_out
from viz_core.lessons.scoring_functions.word_scores import WordScores, last_layer_input, word_scores
from viz_core.pretrained.token_vectors import Tokens, sentence_tokens

MODEL = "transformer-en-fr"
MOST_TOKENS = 24
ROUNDING = 1e-5


def from_words(chapter: Chapter) -> None:
    """A word that asks, a word that answers: their vectors, the terms of their product, and where that score stands."""
    with chapter.card("words"):
        text, model = sentence_input(chapter), or_explain(chapter, lambda: translator(MODEL))
        if model is None:
            return
        encoder = model.model.encoder
        tokens = sentence_tokens(text, MOST_TOKENS, encoder.embedding.embedding_dim, model, ended=True)
        if not tokens.labels:
            st.info(chapter.words("words.empty"), icon=":material/edit:")
            return
        picture = st.container()  # the controls stand under it
        attention = encoder.blocks[-1].attention
        query, key, head = _ask(chapter, attention.num_heads, len(tokens.labels))
        made = word_scores(attention, last_layer_input(encoder, tokens.X), head)
        with picture:
            _picture(chapter, tokens, made, query, key)


def _ask(chapter: Chapter, heads: int, n: int) -> tuple[int, int, int]:
    controls = chapter.controls
    one, other, which = st.columns(3, gap="medium")
    for name in ("asks", "answers"):
        controls.clamp(name, n)
    with one:
        query = int(controls.number("asks", 1, n, min(4, n))) - 1
    with other:
        key = int(controls.number("answers", 1, n, min(5, n))) - 1
    with which:
        head = int(controls.number("which", 1, heads, min(6, heads))) - 1
    return query, key, head


def _picture(chapter: Chapter, tokens: Tokens, made: WordScores, query: int, key: int) -> None:
    terms, scores, weights = (
        part.double().numpy() for part in (made.terms(query, key), made.scores(query), made.weights(query))
    )
    width = len(terms)
    values: dict[str, Any] = {
        "query": escape(tokens.labels[query]),
        "key": escape(tokens.labels[key]),
        "w": width,
        "sum": f"{terms.sum():.2f}",
        "score": f"{scores[key]:.2f}",
        "weight": f"{weights[key]:.3f}",
    }
    names = chapter.words.group("words")
    wide, narrow = st.columns([0.62, 0.38], gap="medium")
    with wide:
        chapter.figure("words", words_figure(made, query, key, names), **values)
    with narrow:
        chapter.figure("row", row_figure(weights, tokens.labels, key, names), **values)
    chapter.text("words", **values)


def words_figure(made: WordScores, query: int, key: int, names: Mapping[str, str]) -> go.Figure:
    """Above, query and key; below them the terms of their product."""
    q, k, terms = (part.numpy() for part in (made.queries[query], made.keys[key], made.terms(query, key)))
    places = np.arange(1, len(q) + 1, dtype=np.float32)
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08)
    for part, colour, name in ((q, QUERIES, names["query"]), (k, KEYS, names["key"])):
        figure.add_bar(x=places, y=part, marker={"color": colour}, name=name, row=1, col=1)
    figure.add_bar(x=places, y=terms, marker={"color": ACCENT}, name=names["term"], row=2, col=1)
    lay_out(figure, "", "", height=400, showlegend=True, barmode="group")
    return figure.update_xaxes(title=names["component"], row=2, col=1)


def row_figure(
    weights: Float[np.ndarray, "n"], labels: tuple[str, ...], key: int, names: Mapping[str, str]
) -> go.Figure:
    """The weights of the whole row, one bar a word; the word that answers in the colour of keys."""
    colours = [KEYS if i == key else "rgba(128,128,128,0.5)" for i in range(len(labels))]
    ticks = [f"{label} {i + 1}" for i, label in enumerate(escape_labels(labels))]
    bars = go.Bar(x=weights.astype(np.float32), y=ticks, orientation="h", marker={"color": colours})
    return lay_out(go.Figure(bars), names["weight"], "", height=400, yaxis={"autorange": "reversed"})
