"""The permutation test: which architectures depend on the order of the words."""

from __future__ import annotations

import streamlit as st
from torch import Tensor, nn

from ui.blocks.figures import residual_figure, token_map
from ui.blocks.translation import sentence_input
from ui.chapter.chapter import Chapter
from ui.compute.models import translator_or_none
from ui.text.markdown import escape
from viz_core.lessons.architectures.experiments import (
    first_head_weights,
    fresh_layers,
    pooled_residual,
    shuffled_residual,
)
from viz_core.pretrained.token_vectors import Tokens, sentence_tokens, shuffled_order

MODEL = "transformer-en-fr"
ROUNDING = 1e-5  # what float32 may lose in sums of a few hundred terms
ORDER_MATTERS = 1e-3  # far above rounding, far below what any layer here does

_fresh_layers = st.cache_resource(max_entries=4, show_spinner=False)(fresh_layers)


def shuffle(chapter: Chapter) -> None:
    """The permutation test: shuffle the words before a layer or after it."""
    text = sentence_input(chapter)
    chapter.text("shuffle")
    tokens = sentence_tokens(text, 32, 64, translator_or_none(MODEL))
    if len(set(tokens.labels)) < 2:
        st.info(chapter.words("nothing-to-shuffle"), icon=":material/edit:")
        return
    order = shuffled_order(tokens.labels, int(chapter.controls.slider("order", 1, 20, 1)))
    shuffled = tuple(tokens.labels[i] for i in order.tolist())
    before, after = escape(" ".join(tokens.labels)), escape(" ".join(shuffled))
    st.markdown(chapter.words("shuffled", before=before, after=after))
    layers = _fresh_layers(tokens.X.shape[1])
    chapter.lazy("shuffled", lambda: _shuffled(chapter, layers, tokens, order, shuffled), 860)


def _shuffled(
    chapter: Chapter, layers: dict[str, nn.Module], tokens: Tokens, order: Tensor, shuffled: tuple[str, ...]
) -> None:
    """Draw the maps before and after, and how much each layer's output changes."""
    _shuffled_maps(chapter, layers["attention"], tokens, order, shuffled)
    residuals = {name: shuffled_residual(layer, tokens.X, order) for name, layer in layers.items()}
    names = chapter.words.group("figure")
    summary = [f"{names[name]} {residual:.2g}" for name, residual in residuals.items()]
    figure = residual_figure(residuals, ORDER_MATTERS, names["order-residual"], names)
    chapter.figure("order", figure, summary=summary)
    with chapter.claim_row("claims-shuffle"):
        chapter.claim("blind", residuals["attention"], ROUNDING)
        chapter.claim("pooled", pooled_residual(layers["attention"], tokens.X, order), ROUNDING)
        for name in ("recurrent", "convolution", "dilated", "restricted"):
            chapter.claim_at_least("ordered", residuals[name], ORDER_MATTERS, layer=names[name])


def _shuffled_maps(
    chapter: Chapter, layer: nn.Module, tokens: Tokens, order: Tensor, shuffled: tuple[str, ...]
) -> None:
    """Self-attention's map of the sentence and of its words shuffled: the same cells in other places."""
    names = chapter.words.group("figure")
    inputs = {"map-before": (tokens.X, tokens.labels), "map-after": (tokens.X[order], shuffled)}
    for column, (name, (X, labels)) in zip(st.columns(2), inputs.items(), strict=True):
        weights = first_head_weights(layer, X).numpy()
        with column:
            chapter.text(name)
            chapter.figure(name, token_map(weights, labels, "weights", names), count=len(labels))
    chapter.guidance("maps")
