"""Bahdanau attention: a decoder that attends to the source before every word."""

from functools import partial

import streamlit as st

from pages.bahdanau.parts import (
    ANSWERS,
    ATTENTION,
    BROKEN,
    PLAIN,
    all_else_alike,
    diagrams,
    draw_step,
    how_well_aligned,
    printed,
    states,
    step_control,
    without_attention,
)
from ui.blocks.translation import show_notes, show_result, translate_or_keep, translation_inputs
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate, sentence_request, translation_maps
from ui.text.model_card import model_title
from ui.text.words import current_language
from ui.widgets.view_link import open_map, open_tokens
from viz_core.attention import AdditiveAttention
from viz_core.lessons.bahdanau import erased_error
from viz_core.models import (
    Decoder,
    RNNSearchDecoder,
    Seq2SeqAttentionDecoder,
    Seq2SeqDecoder,
    Seq2SeqEncoder,
    TokenReader,
)
from viz_core.pretrained import available
from viz_core.view.shipped import aligning_head

chapter = Chapter("bahdanau")
chapter.question()
chapter.definition()
with chapter.card("main", has_question=True):
    request = translation_inputs(chapter, ATTENTION)
    request, result = translate_or_keep(chapter, request)
    show_result(result)
    step = step_control(chapter, result)
    figure = st.container()  # above what breaks it
    broken = chapter.break_it(*BROKEN)
    with figure:
        chapter.side_by_side(broken, partial(draw_step, chapter, request, result, step))
chapter.exercise("bed", marks=ANSWERS)
chapter.takeaways()
chapter.next()


def alignment_map() -> None:
    """All steps as one map, how well it aligns, and what the model without attention writes."""
    groups = translation_maps(request, current_language())
    contribution_kind = chapter.contributions_choice()
    shown = translation_maps(request, current_language(), contribution_kind)
    view = chapter.attention_view(
        shown, aligning_head(groups), run_source=request.run_source, contribution_kind=contribution_kind
    )
    show_notes(chapter, request, result)
    without_attention(chapter, request)
    how_well_aligned(chapter)
    chapter.downloads({"weights": lambda: open_map(groups, view).numpy()}, **open_tokens(groups, view))


def models() -> None:
    """Both networks as diagrams, what the one on this page does differently, and the bottleneck as a claim."""
    diagrams(chapter)
    erased = chapter.break_it("attended", part="models") == "attended"
    with chapter.claim_row("models"):
        plain = sentence_request(PLAIN, request.text)
        run = request if erased else plain
        chapter.claim("bottleneck", lambda: evaluate(run, erased_error), 0.0)
    chapter.text("state")
    chapter.text("differs")


def book() -> None:
    """What the book prints on this model, and its exercises."""
    printed(chapter)
    chapter.exercise("cell")
    chapter.exercise("score")


def code() -> None:
    """Sources, model cards and source code."""
    chapter.sources({"chen": None})
    cards = {card.name: card for card in available()}
    for name in (ATTENTION, PLAIN):
        if name in cards:
            chapter.model_card(f"card-{name}", model_title(cards[name]), cards[name])
    chapter.code(
        AdditiveAttention,
        RNNSearchDecoder,
        Seq2SeqAttentionDecoder,
        Seq2SeqEncoder,
        Seq2SeqDecoder,
        TokenReader,
        Decoder,
    )


chapter.deeper(
    {
        "map": alignment_map,
        "models": models,
        "states": lambda: states(chapter, request, result, step),
        "alike": lambda: all_else_alike(chapter),
        "book": book,
        "code": code,
    }
)
