"""Inside the encoder, the causal mask, how the model was trained, and where its parameters are."""

from functools import cache
from typing import Any

import plotly.graph_objects as go
import streamlit as st
from PIL import Image

from pages.transformer import figures
from serving.requests.shipped import TranslationRequest
from ui.blocks.translation import alignment_picture
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate
from ui.text.model_card import trained_for
from ui.text.translations import device_name
from viz_core.lessons.transformer.layers import (
    encoder_shapes,
    encoder_walk,
    head_off_first,
    normalised_examples,
    saved_tensors,
    unmasked_map,
)
from viz_core.maps.fingerprints import future_weight
from viz_core.models import anatomy
from viz_core.pretrained import Translation, Translator
from viz_core.view.state import ViewState


def inside_the_encoder(chapter: Chapter, model: Translator, request: TranslationRequest, result: Translation) -> None:
    """Every step of the encoder with this sentence's numbers."""
    names = chapter.words.group("figure")
    walk = cache(lambda: evaluate(request, encoder_walk))
    chapter.text("inside")
    chapter.lazy("depth", lambda: _depth(chapter, walk()[0], names), 480)
    ahead = anatomy.step_names(model.model.encoder)
    places = {figures.step_name(*step, names): place for place, step in enumerate(ahead)}
    shown = chapter.controls.select("step", tuple(places), next(iter(places)))
    chapter.figure(
        "step",
        lambda: figures.step_heatmap(walk()[0][places[shown]], result.source_tokens, names),
        height=300,
        step=shown,
        count=len(result.source_tokens),
    )
    with chapter.claim_row("claims-inside"):
        chapter.claim("walk", lambda: walk()[1]["walk"], 1e-5)
        chapter.claim("twin", lambda: walk()[1]["twin"], 1e-6)
    layer, batch = normalised_examples()
    chapter.text("norms")
    chapter.source_card("norms", [*layer.flatten().tolist(), *batch.flatten().tolist()])
    chapter.lazy("shapes", lambda: _shapes(chapter), 110)


def _shapes(chapter: Chapter) -> None:
    """The shapes that the book checks."""
    shapes = encoder_shapes()
    left, right = st.columns(2, gap="large")
    with left:
        chapter.source_card("block", shapes["block"])
    with right:
        chapter.source_card("encoder", shapes["encoder"])


def _depth(chapter: Chapter, steps: tuple[anatomy.Step, ...], names: dict[str, str]) -> None:
    """How long the token vectors are after each step."""
    norms = anatomy.mean_norms(steps)
    by_name = {step.name: norm for step, norm in zip(steps[:3], norms, strict=False)}
    lengths: dict[str, Any] = {name: f"{by_name[name]:.1f}" for name in ("embedding", "scaled", "positioned")}
    figure = figures.depth_figure(steps, names)
    chapter.figure("depth", figure, summary=[f"{norm:.1f}" for norm in norms], **lengths)


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


def training(chapter: Chapter, model: Translator) -> None:
    """Curves, scores and the card, all as the training script wrote them."""
    record, names = model.card.training, chapter.words.group("figure")
    scores, curve, bins = model.card.scores, record["curve"], record["bleu_by_length"]
    chapter.text(
        "training",
        time=trained_for(record["seconds"]),
        device=device_name(record["device"]),
        sentences=f"{sum(b['sentences'] for b in bins):,}",
        greedy=f"{scores['bleu_greedy']:.1f}",
        beam=f"{scores['bleu_beam_4']:.1f}",
    )
    rows = "\n".join(f"| {english} | {french} |" for english, french in record["book_strings"].items())
    chapter.text("lower", lower=f"{scores['bleu_lower_case']:.1f}", rows=rows)
    chapter.source_card("translations")
    last = curve[-1]
    chapter.figure(
        "curve",
        lambda: figures.curve_figure(curve, names),
        train=f"{last['train_loss']:.2f}",
        validation=f"{last['validation_loss']:.2f}",
        bleu=f"{last['validation_bleu']:.1f}",
        epochs=f"{last['epoch']:.0f}",
    )
    summary = {f"{b['from']}–{b['to']}": f"{b['bleu']:.0f}" for b in bins}
    chapter.figure("length", lambda: figures.length_figure(bins, names), summary=summary)
    chapter.model_card("card", chapter.words("card"), model.card)


def parameters(chapter: Chapter, model: Translator) -> None:
    """How many parameters each part has."""
    counts, names = anatomy.parameters_by_part(model.model), chapter.words.group("figure")
    summary = [f"{names[part]} {count:,}" for part, count in counts.items()]
    chapter.figure("parameters", lambda: figures.parameter_figure(counts, names), summary=summary)


def gallery_picture() -> Image.Image:
    """The head that aligns French and English, on one of the long samples."""
    return alignment_picture("transformer-en-fr", "cat")
