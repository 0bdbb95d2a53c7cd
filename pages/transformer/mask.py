"""The causal mask, as a decoder's own map shows it."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

from pages.transformer import figures
from ui.chapter.chapter import Chapter
from viz_core.lessons.transformer.broken import saved_tensors
from viz_core.maps.residuals import future_weight
from viz_core.pretrained import Translation, Translator
from viz_core.view.state import ViewState


def causal_mask(chapter: Chapter, model: Translator, result: Translation, view: ViewState) -> None:
    """Draw one decoder self-attention map: that of the open head if it is one, else the first."""
    layer, head = (view.layer, view.head) if view.group == "decoder-self" else (0, 0)
    names = chapter.words.group("figure")

    def draw() -> go.Figure:
        weights = result.trace[f"decoder.{layer}.self"].weights(head=head)[0].numpy()
        return figures.mask_figure(weights, result.target_tokens, result.decoder_tokens, names)

    chapter.text("mask")
    chapter.figure("mask", draw, layer=layer + 1, head=head + 1)
    selfs = [call for call in result.trace if (call.stack, call.kind) == ("decoder", "self")]
    left, right = st.columns(2, gap="large")
    with left:
        chapter.source_card("causal", lambda: max(future_weight(call) for call in selfs))
    with right:
        chapter.source_card("kept", saved_tensors(model.model))
