"""The Transformer: type English, read French, open every head."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import streamlit as st

from pages.transformer.decoding import ANSWERS, about_words, hypotheses, show_words, table_of_words
from pages.transformer.heads import contributions, lens, maps_without, show_both, which_head_aligns
from pages.transformer.parts import broken_map, causal_mask, inside_the_encoder, parameters, training
from serving.requests.shipped import TranslationRequest
from ui.blocks.heads_off import head_buttons, head_importance_grid, head_switches, heads_menu, open_head, toggle_head
from ui.blocks.score_products import open_pair, score_products
from ui.blocks.small_walk import small_walk, walk_link
from ui.blocks.translation import second_sentence, show_notes, show_result, translate_or_keep, translation_inputs
from ui.chapter.chapter import Chapter
from ui.compute.heads import head_importance
from ui.compute.models import evaluate, row_error, translation_maps, translator
from ui.text.head_names import HeadNames
from ui.text.words import current_language
from ui.widgets.view_link import open_map, open_tokens
from viz_core.attention import DotProductAttention, MultiHeadAttention
from viz_core.lessons.transformer.layers import translation_residuals, unmasked_residuals
from viz_core.models import (
    AddNorm,
    PositionWiseFFN,
    TransformerDecoder,
    TransformerDecoderBlock,
    TransformerEncoder,
    TransformerEncoderBlock,
)
from viz_core.pretrained import Translation, Translator
from viz_core.trace import attend, attention_weights
from viz_core.view.map_group import MapGroup
from viz_core.view.shipped import aligning_head
from viz_core.view.state import ViewState

MODEL = "transformer-en-fr"
ROUNDING = 1e-5  # what float32 may lose in sums of a few hundred terms
LOGIT_ROUNDING = 1e-4  # the same through all layers and the output layer


def causality(chapter: Chapter, request: TranslationRequest, result: Translation, broken: str, setting: str) -> None:
    """The claims about the decoder with this setting; if something is broken, above them a map of its own."""
    measured = unmasked_residuals if setting else translation_residuals
    residuals = cache(lambda: evaluate(request, measured))
    if broken:
        broken_map(chapter, request, result, setting)
    with chapter.claim_row("main"):
        chapter.claim("future", lambda: residuals()["future"], 0.0)
        chapter.claim("leak", lambda: residuals()["leak"], ROUNDING)


def search(
    chapter: Chapter, model: Translator, request: TranslationRequest, result: Translation, groups: Sequence[MapGroup]
) -> None:
    """How the words were chosen: probabilities, rare words, the tree of beam search, and two checks of decoding."""
    show_notes(chapter, request, result)
    about_words(chapter, model, request, result)
    hypotheses(chapter, request)
    with chapter.claim_row("search"):
        chapter.claim("cache", lambda: evaluate(request, translation_residuals)["cache"], LOGIT_ROUNDING)
        chapter.claim("rows", lambda: row_error(groups), ROUNDING, heads=sum(c.num_heads for c in result.trace))


def about_contributions(
    chapter: Chapter, request: TranslationRequest, result: Translation, groups: Sequence[MapGroup], view: ViewState
) -> None:
    """Weights beside contributions, and a claim that vectors of one length break."""
    as_long = chapter.break_it("as-long", part="contributions") == "as-long"
    contributions(chapter, request, result, *open_head(groups, view), as_long=as_long)


def importance(chapter: Chapter, model: Translator, heads: HeadNames, off: tuple[str, ...]) -> None:
    """The importance of each head. A click switches a head, which changes the whole page."""
    if heads.read(st.session_state.get(chapter.controls.key("without"), off)) != heads.read(off):
        st.rerun()
    head_importance_grid(chapter, MODEL, head_importance(MODEL), heads, off)
    which_head_aligns(chapter, model)
    chapter.exercise("aligner")


def products(chapter: Chapter, request: TranslationRequest, groups: Sequence[MapGroup], view: ViewState) -> None:
    """A score as a sum over dimensions, and what additive scores would cost."""
    score_products(chapter, request, groups, view)
    chapter.exercise("additive")


def sizes(chapter: Chapter, model: Translator) -> None:
    """Parameters by part, and the cost of more layers."""
    parameters(chapter, model)
    chapter.exercise("deeper")


def pretraining(chapter: Chapter) -> None:
    """The book's exercises on the halves of a Transformer that are trained alone, and what they are used for."""
    for name in ("halves", "one-row", "tasks", "jobs", "readout"):
        chapter.exercise(name)


def code(chapter: Chapter, result: Translation, groups: Sequence[MapGroup], view: ViewState) -> None:
    """Sources, source code and downloads."""
    chapter.sources({"voita": None, "michel": None, "kobayashi": None, "clark": None})
    chapter.code(
        TransformerEncoder,
        TransformerEncoderBlock,
        TransformerDecoder,
        TransformerDecoderBlock,
        MultiHeadAttention,
        attention_weights,
        DotProductAttention,
        AddNorm,
        PositionWiseFFN,
        attend,
    )
    chapter.downloads(
        {"weights": lambda: open_map(groups, view).numpy()},
        **open_tokens(groups, view),
        tables={"words": lambda: table_of_words(result.words)},
    )


chapter = Chapter("transformer")
chapter.question()
chapter.definition()


@dataclass
class Shown:
    """What the card shows now. The sections below are drawn when they are opened, and read it then.

    Attributes:
        off: the names of the heads that are off.
    """

    request: TranslationRequest
    result: Translation
    heads: HeadNames
    off: tuple[str, ...]
    groups: tuple[MapGroup, ...]
    view: ViewState


drawn: list[Shown] = []  # of this visit's last run of the whole page, and of its card since


def sentence_and_maps() -> None:
    """The card and what it gives. Alone of the page it runs again for another sentence, head or view.

    An open section shows what the card does: then the whole page runs.
    """
    if drawn and chapter.any_open(sections):
        st.rerun()
    with chapter.card("main", has_picture=False, has_question=True):
        request = translation_inputs(chapter, MODEL)
        waiting = st.container(key="waiting")  # messages come and go here, and move nothing below, nor take its focus
        with waiting:
            request, result = translate_or_keep(chapter, request)
        with st.container(horizontal=True, key="result-row"):
            written = st.container(gap="xsmall", key="result")
            with st.container(width="content"):
                broken = chapter.break_it("no-mask")
                menu = heads_menu(chapter, "second", lazy=True)
        maps = st.container(key="stage")
    heads = HeadNames.of(result.trace)
    off: tuple[str, ...] = ()
    second: tuple[MapGroup, ...] = ()
    inputs, contribution_kind = ("", ""), chapter.contribution_kind()
    if menu.is_drawn:
        with menu.block():
            off = head_switches(chapter, heads)
            contribution_kind = chapter.contributions_choice()
            second, inputs = second_sentence(chapter, request, contribution_kind)
    without = heads.read(off)
    with waiting:
        groups = translation_maps(request, current_language())
        shown = translation_maps(request, current_language(), contribution_kind) if contribution_kind else groups
    with written:
        if off:
            show_both(chapter, request, result, off, without)
        else:
            show_result(result)
            show_words(chapter, "said", result.words)
    with maps:
        if off and not second:
            second, inputs = maps_without(request, off, without, contribution_kind)
        view = aligning_head(groups)
        if not broken:
            view = chapter.attention_view(
                shown,
                view,
                second=second,
                inputs=inputs,
                run_source=request.run_source,
                off=without,
                on_switch=partial(toggle_head, chapter, heads),
                on_cell=partial(open_pair, groups),
                contribution_kind=contribution_kind,
            )
            if menu.is_drawn:
                with menu.block():
                    head_buttons(chapter, heads, groups, view, off)
        chapter.side_by_side(broken, partial(causality, chapter, request, result, broken))
    chapter.send_picture()
    drawn[:] = [Shown(request, result, heads, off, groups, view)]
    chapter.exercise("off", collapsed=True, marks=ANSWERS)


sections: dict[str, Callable[[Shown], None]] = {
    "search": lambda now: search(chapter, translator(MODEL), now.request, now.result, now.groups),
    "mask": lambda now: causal_mask(chapter, translator(MODEL), now.result, now.view),
    "inside": lambda now: inside_the_encoder(chapter, translator(MODEL), now.request, now.result),
    "lens": lambda now: lens(chapter, now.request, now.result),
    "contributions": lambda now: about_contributions(chapter, now.request, now.result, now.groups, now.view),
    "products": lambda now: products(chapter, now.request, now.groups, now.view),
    "worth": lambda now: importance(chapter, translator(MODEL), now.heads, now.off),
    "training": lambda _now: training(chapter, translator(MODEL)),
    "parameters": lambda _now: sizes(chapter, translator(MODEL)),
    "pretraining": lambda _now: pretraining(chapter),
    "code": lambda now: code(chapter, now.result, now.groups, now.view),
}
chapter.fragment(sentence_and_maps)
chapter.takeaways()
chapter.next()
with st.container(horizontal=True, vertical_alignment="center", key="overview"):
    with st.container():
        small_walk(current_language(), height=100)
    walk_link(current_language())
chapter.deeper({name: partial(lambda draw: draw(drawn[0]), draw) for name, draw in sections.items()})
