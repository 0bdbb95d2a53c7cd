"""The causal mask in a map of the decoder's self-attention, and the same map without it."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

from pages.transformer import figures
from serving.requests.translation import TranslationRequest
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate
from viz_core.lessons.transformer.broken import head_off_first, saved_tensors, unmasked_map
from viz_core.maps.residuals import future_weight
from viz_core.pretrained import Translation, Translator
from viz_core.view.state import ViewState


def causal_mask(chapter: Chapter, model: Translator, result: Translation, view: ViewState) -> None:
    """Draw one decoder self-attention map: that of the open head if it is one, else one that attends elsewhere
    than to the first key."""
    layer, head = (view.layer, view.head) if view.group == "decoder-self" else head_off_first(result)
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


def broken_map(chapter: Chapter, request: TranslationRequest, result: Translation, setting: str) -> None:
    """Draw the map of one head of the decoder's self-attention, with the causal mask or ("no-mask") without it."""
    layer, head = head_off_first(result)
    weights = result.trace[f"decoder.{layer}.self"].weights(head=head)[0]
    if setting:
        weights = evaluate(request, unmasked_map, layer, head)
    figure = figures.mask_figure(
        weights.squeeze(0).numpy(),
        result.target_tokens,
        result.decoder_tokens,
        chapter.words.group("figure"),
        causal=not setting,
    )
    future = float(weights.triu(1).sum(dim=-1).max())
    chapter.figure("broken-mask", figure, layer=layer + 1, head=head + 1, future=f"{future:.0%}")
