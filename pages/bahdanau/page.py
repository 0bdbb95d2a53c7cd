"""Bahdanau attention: a decoder that attends to the source before every word."""

from functools import cache, partial

from pages.bahdanau.book import chosen_by_rule, diagrams, printed
from pages.bahdanau.comparison import (
    as_many_of_each,
    by_length,
    how_far_trained,
    how_trained,
    how_well_aligned,
    side_by_side,
)
from pages.bahdanau.controlled_comparison import all_else_alike
from pages.bahdanau.exercises import other_cell, other_score
from pages.bahdanau.models import ATTENTION, PLAIN
from pages.bahdanau.stepping import step_through
from ui.blocks.translation import show_notes, show_result, translate, translation_inputs
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate, sentence_request, translation_maps
from ui.text.words import current_language
from ui.widgets.open_map import open_map, open_tokens
from viz_core.attention import AdditiveAttention
from viz_core.lessons.bahdanau.broken import erased_error, undivided, without_tanh
from viz_core.lessons.bahdanau.decoder_steps import bottleneck_error, step_residuals
from viz_core.models import (
    Decoder,
    RNNSearchDecoder,
    Seq2SeqAttentionDecoder,
    Seq2SeqDecoder,
    Seq2SeqEncoder,
    TokenReader,
)
from viz_core.pretrained.samples import opening
from viz_core.view.translation import aligning_head

ROUNDING = 1e-5  # what float32 may lose in sums of a few hundred terms

chapter = Chapter("bahdanau")
chapter.question()
request = translation_inputs(chapter, opening())
result = chapter.require(translate(chapter, ATTENTION, request))
show_result(result)
step_through(chapter, request, result)
show_notes(request, result)
chosen_by_rule(chapter, request)

chapter.exercise("bottleneck")

chapter.heading("models")
diagrams(chapter)

chapter.heading("map")
groups = translation_maps(ATTENTION, request.text, request.beam, current_language())
run_source, show_contributions = (
    sentence_request(ATTENTION, request.text, request.beam).run_source,
    chapter.contributions_choice(),
)
shown = translation_maps(
    ATTENTION, request.text, request.beam, current_language(), show_contributions=show_contributions
)
view = chapter.attention_view(
    shown, aligning_head(groups), run_source=run_source, show_contributions=show_contributions
)
how_well_aligned(chapter)

chapter.heading("worth")
chapter.text("worth")
chapter.lazy("side-by-side", lambda: side_by_side(chapter, request), 155)
chapter.text("unequal")
how_far_trained(chapter)
by_length(chapter)
as_many_of_each(chapter)
all_else_alike(chapter)

chapter.text("formula")
with_attention = sentence_request(ATTENTION, request.text, request.beam)
residuals = cache(lambda: evaluate(with_attention, step_residuals))
with chapter.claims():
    broken = chapter.break_and_explain("undivided", "no-tanh", "attended")
    rows = (lambda: evaluate(with_attention, undivided)) if broken == "undivided" else lambda: residuals()["rows"]
    formula = (
        (lambda: evaluate(with_attention, without_tanh)) if broken == "no-tanh" else lambda: residuals()["formula"]
    )
    erased = (
        (with_attention, erased_error)
        if broken == "attended"
        else (sentence_request(PLAIN, request.text), bottleneck_error)
    )
    chapter.claim("rows", rows, ROUNDING)
    chapter.claim("formula", formula, ROUNDING)
    chapter.claim("contexts", lambda: residuals()["contexts"], ROUNDING)
    chapter.claim("bottleneck", lambda: evaluate(*erased), 0.0)

chapter.heading("book")
printed(chapter)
chapter.exercise("cell", reveal=partial(other_cell, chapter))
chapter.exercise("score", reveal=partial(other_score, chapter))

chapter.heading("training")
how_trained(chapter)

chapter.exercise("order")
chapter.sources({"chen": None})
chapter.code(
    AdditiveAttention, RNNSearchDecoder, Seq2SeqAttentionDecoder, Seq2SeqEncoder, Seq2SeqDecoder, TokenReader, Decoder
)
chapter.downloads({"weights": lambda: open_map(groups, view).numpy()}, **open_tokens(groups, view))
chapter.next()
