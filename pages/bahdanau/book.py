"""The book's material on this model: two diagrams, the decoder's state, printed results, settings."""

from __future__ import annotations

import streamlit as st

from pages.bahdanau.book_figures import attention_model, plain_model
from pages.bahdanau.models import ATTENTION, PLAIN
from ui.blocks.translation import TranslationInputs
from ui.chapter.chapter import Chapter
from ui.compute.models import translation, translator
from ui.text.markdown import escape
from viz_core.lessons.bahdanau.book_examples import decoder_shapes
from viz_core.pretrained.bleu import book_bleu
from viz_core.pretrained.samples import opening


def chosen_by_rule(chapter: Chapter, request: TranslationInputs) -> None:
    """For the page's first sentence: the plain model's translation, and how the sentence was chosen."""
    sample = opening()
    if request.text != sample.english:
        return

    def draw() -> None:
        with_attention, without = (translation(name, sample.english, 1).text for name in (ATTENTION, PLAIN))
        right = with_attention in sample.references and without not in sample.references
        chapter.finding("opening", right, attention=escape(with_attention), plain=escape(without))

    chapter.lazy("opening", draw, 60)


def diagrams(chapter: Chapter) -> None:
    """Both networks: one state between encoder and decoder, or all of them."""
    names = chapter.words.group("figure")
    plain, attention = st.columns(2, gap="large")
    with plain:
        chapter.figure("plain-model", lambda: plain_model(names), height=108)
    with attention:
        chapter.figure("attention-model", lambda: attention_model(names), height=171)


def printed(chapter: Chapter) -> None:
    """The shapes the book checks, its BLEU, and its settings."""
    chapter.lazy("book", lambda: _printed(chapter), 520)


def _printed(chapter: Chapter) -> None:
    shapes = decoder_shapes()
    card = translator(ATTENTION).card
    sizes, recipe = card.config["model"], card.training["recipe"]
    left, right = st.columns(2, gap="large")
    with left:
        chapter.source_card("output-shape", shapes["output"])
        chapter.source_card("keys-shape", shapes["keys"])
        chapter.source_card("hidden-shape", shapes["hidden"])
    with right:
        chapter.source_card("mouille", book_bleu("il est mouillé .".split(), "il est calme .".split()))
        settings = [sizes[name] for name in ("embed_size", "num_hiddens", "num_layers", "dropout")]
        chapter.source_card("settings", [*settings, recipe["adam_lr"]], vocabulary=f"{sizes['vocab_size']:,}")
