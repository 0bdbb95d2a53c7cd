"""The book's examples of scoring functions: its figure, its batch of sentences and its toy."""

from __future__ import annotations

from functools import partial

import numpy as np
import streamlit as st

from pages.scoring_functions.book_figures import sentences_figure, toy_figure
from ui.blocks.diagram import attention_diagram, attention_height
from ui.chapter.chapter import Chapter
from ui.text.numbers import separators
from viz_core.lessons.scoring_functions.book_examples import (
    LENGTHS,
    SENTENCES,
    batch_product_shape,
    concatenation_error,
    dot_product_toy,
    sentence_weights,
)
from viz_core.lessons.scoring_functions.masked_scores import MaskedSoftmax

_SHOWN = 6  # keys in the diagram
_DROPOUTS = (0.0, 0.1, 0.3, 0.5, 0.7)
_ROUNDING = 1e-6


def output_diagram(chapter: Chapter, masked: MaskedSoftmax) -> None:
    """The reader's first row, from scores to the weighted sum of values."""
    weights, scores = (each.flatten(0, 1)[0, :_SHOWN].tolist() for each in (masked.weights, masked.scores))
    allowed = masked.allowed.flatten(0, 1)[0, :_SHOWN].tolist()
    shown = [f"{score:.3g}" if seen else "−∞" for score, seen in zip(scores, allowed, strict=True)]
    names = chapter.words.group("figure")
    keys, values = ([f"{letter}{i + 1}" for i in range(len(weights))] for letter in "kv")
    signs = separators(chapter.words.language)
    figure = partial(attention_diagram, "q", keys, weights, values, names["diagram-sum"], names, shown, signs)
    chapter.figure(
        "output", figure, height=attention_height(len(weights)), summary=[f"{weight:.2f}" for weight in weights]
    )


def sentences(chapter: Chapter) -> None:
    """Three sentences of unequal length in one batch, and where their blanks go."""
    words, weights = st.columns([2, 3], gap="large")
    with words:
        chapter.text("sentences")
    with weights:
        names = chapter.words.group("figure")
        signs = separators(chapter.words.language)
        figure = partial(sentences_figure, sentence_weights().numpy(), SENTENCES, names, signs)
        chapter.figure("sentences", figure, height=210, sentences=[" ".join(each) for each in SENTENCES])


def toy(chapter: Chapter) -> None:
    """The book's toy: random keys beside equal ones, and dropout on the weights of both."""
    chapter.text("toy")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        dropout = float(chapter.controls.select_slider("dropout", _DROPOUTS, 0.0))
        seed = int(chapter.controls.number("toy-draw", 0, 999, 0))
    names = chapter.words.group("figure")
    drawn = {kind: dot_product_toy(kind == "equal", dropout, seed) for kind in ("random", "equal")}
    for column, (kind, each) in zip(st.columns(2), drawn.items(), strict=True):
        with column:
            chapter.text(f"toy.{kind}")
            rows = np.stack([*each.weights.numpy(), *each.dropped.numpy()])
            sums = [f"{float(row.sum()):.3f}" for row in each.dropped]
            first, second = LENGTHS
            figure = partial(toy_figure, rows, LENGTHS, names)
            chapter.figure("toy", figure, height=226, first=first, second=second, sums=sums, dropout=f"{dropout:g}")
    equal = drawn["equal"]
    left, right = st.columns(2, gap="large")
    with left:
        chapter.source_card("dot-shape", equal.output.shape)
    with right:
        chapter.source_card("equal-keys", equal.output.flatten().tolist())
    chapter.text("shapes")
    chapter.source_card("product", batch_product_shape)
    with chapter.claim_row("claims-toy"):
        chapter.claim("blanks", _beyond(drawn["random"].weights.numpy()), 0.0, first=LENGTHS[0], second=LENGTHS[1])
        chapter.claim("concatenation", concatenation_error, _ROUNDING)


def _beyond(weights: np.ndarray) -> float:
    """The largest weight on a key beyond its row's length."""
    return max(float(row[length:].max()) for row, length in zip(weights, LENGTHS, strict=True))
