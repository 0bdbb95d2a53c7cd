"""The Transformer chapter's further looks: inside the encoder, the causal mask, training, parameters."""

from __future__ import annotations

import streamlit as st
import torch

from pages.transformer import figures
from ui.chapter import Chapter
from ui.models import translation_look
from ui.translation import Request
from viz_core.models import anatomy
from viz_core.pretrained import Translation, Translator
from viz_core.view.state import ViewState

_BOOK_EXAMPLES = torch.tensor([[1.0, 2.0], [2.0, 3.0]])


def inside_the_encoder(chapter: Chapter, name: str, request: Request, result: Translation) -> None:
    """Every step of the encoder with this sentence's numbers."""
    names = chapter.words.group("figure")
    steps, residuals = translation_look("encoder-steps", name, request.text, request.beam)
    chapter.text("inside")
    norms = anatomy.mean_norms(steps)
    chapter.figure("depth", figures.depth_figure(steps, names), summary=", ".join(f"{norm:.1f}" for norm in norms))
    titles = {figures.step_name(step, names): step for step in steps}
    step = titles[chapter.controls.select("step", tuple(titles), next(iter(titles)))]
    chapter.figure(
        "step",
        figures.step_heatmap(step, result.source_tokens, names),
        step=figures.step_name(step, names),
        count=len(result.source_tokens),
    )
    with st.container(horizontal=True, key="claims-inside"):
        chapter.claim("walk", residuals["walk"], 1e-5)
        chapter.claim("twin", residuals["twin"], 1e-6)
    layer, batch = anatomy.layer_norm(_BOOK_EXAMPLES), anatomy.batch_norm(_BOOK_EXAMPLES)
    rows = {"layer_1": layer[0], "layer_2": layer[1], "batch_1": batch[0], "batch_2": batch[1]}
    chapter.text("norms", **{name: ", ".join(f"{v:+.2f}" for v in row.tolist()) for name, row in rows.items()})


def causal_mask(chapter: Chapter, result: Translation, view: ViewState) -> None:
    """One decoder self-attention map: the head opened above where it is one, else the first."""
    layer, head = (view.layer, view.head) if view.group == "decoder-self" else (0, 0)
    weights = result.trace[f"decoder.{layer}.self"].weights(head=head)[0].numpy()
    chapter.text("mask")
    chapter.figure(
        "mask",
        figures.mask_figure(weights, result.target_tokens, result.decoder_tokens, chapter.words.group("figure")),
        layer=layer + 1,
        head=head + 1,
    )


def training(chapter: Chapter, model: Translator) -> None:
    """Curves, scores and the card, all as the training script wrote them."""
    record, names = model.card.training, chapter.words.group("figure")
    scores, curve, bins = model.card.scores, record["curve"], record["bleu_by_length"]
    chapter.text(
        "training",
        time=f"{record['seconds'] // 60} min",
        device=record["device"],
        sentences=f"{sum(b['sentences'] for b in bins):,}",
        greedy=f"{scores['bleu_greedy']:.1f}",
        beam=f"{scores['bleu_beam_4']:.1f}",
    )
    last = curve[-1]
    chapter.figure(
        "curve",
        figures.curve_figure(curve, names),
        train=last["train_loss"],
        validation=last["validation_loss"],
        bleu=last["validation_bleu"],
        epochs=f"{last['epoch']:.0f}",
    )
    summary = ", ".join(f"{b['from']}–{b['to']}: {b['bleu']:.0f}" for b in bins)
    chapter.figure("length", figures.length_figure(bins, names), summary=summary)
    with st.expander(chapter.words("card"), icon=":material/description:"):
        st.markdown(model.card.text)


def parameters(chapter: Chapter, model: Translator) -> None:
    """How many parameters each part has."""
    counts, names = anatomy.parameters_by_part(model.model), chapter.words.group("figure")
    summary = ", ".join(f"{names[part]} {count:,}" for part, count in counts.items())
    chapter.figure("parameters", figures.parameter_figure(counts, names), summary=summary)
