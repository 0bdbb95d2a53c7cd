"""Bahdanau attention: a decoder that looks at the source anew before every word."""

from functools import cache

import streamlit as st

from pages.bahdanau.comparison import by_length, how_far_trained, how_trained, how_well_aligned, side_by_side
from pages.bahdanau.models import ATTENTION, PLAIN
from pages.bahdanau.stepping import step_through
from ui.chapter import Chapter
from ui.models import ask, sentence, translation_maps
from ui.translation import ask_sentence, show_result, translate
from ui.words import current_language
from viz_core.attention import AdditiveAttention
from viz_core.lessons.bahdanau.decoder_steps import bottleneck_error, step_residuals
from viz_core.models import Decoder, Seq2SeqAttentionDecoder, Seq2SeqDecoder, Seq2SeqEncoder, TokenReader
from viz_core.view.translation import aligning_head, open_map, open_tokens

ROUNDING = 1e-5  # what float32 may lose in sums of a few hundred terms

chapter = Chapter("bahdanau")
chapter.question()
request = ask_sentence(chapter)
result = translate(chapter, ATTENTION, request)
if result is None:
    st.stop()
show_result(request, result)

chapter.exercise("bottleneck")

step_through(chapter, request, result)

chapter.heading("map")
groups = translation_maps(ATTENTION, request.text, request.beam, current_language())
recipe = sentence(ATTENTION, request.text, request.beam).recipe
view = chapter.attention_view(groups, aligning_head(groups), recipe=recipe)
how_well_aligned(chapter)

chapter.heading("worth")
chapter.text("worth")
chapter.near("side-by-side", lambda: side_by_side(chapter, request), 155)
chapter.text("unequal")
how_far_trained(chapter)
by_length(chapter)

chapter.text("formula")
residuals = cache(lambda: ask(sentence(ATTENTION, request.text, request.beam), step_residuals))
with chapter.claims():
    chapter.claim("rows", lambda: residuals()["rows"], ROUNDING)
    chapter.claim("formula", lambda: residuals()["formula"], ROUNDING)
    chapter.claim("bottleneck", lambda: ask(sentence(PLAIN, request.text), bottleneck_error), 0.0)

chapter.heading("training")
how_trained(chapter)

chapter.exercise("order")
chapter.code(AdditiveAttention, Seq2SeqAttentionDecoder, Seq2SeqEncoder, Seq2SeqDecoder, TokenReader, Decoder)
chapter.downloads(**open_tokens(groups, view), weights=lambda: open_map(groups, view).numpy())
