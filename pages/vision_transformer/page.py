"""Transformers for vision: a real ViT on any picture, every head over it."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from pages.vision_transformer.inputs import ROUNDING, choose_model, choose_picture, shipped_card, token_read
from pages.vision_transformer.parts import heads, patch_lab, patches, permutation, positions
from pages.vision_transformer.prediction import maps_without, prediction, reliability, show_without, training
from ui.blocks.heads_off import head_buttons, head_importance_grid, head_switches, heads_menu, toggle_head
from ui.blocks.score_products import open_pair, score_products
from ui.chapter.chapter import Chapter
from ui.compute.heads import head_importance
from ui.compute.models import evaluate, row_error, warn_of_weights
from ui.compute.pictures import picture_maps
from ui.text.head_names import HeadNames
from ui.text.words import current_language
from ui.widgets.view_link import open_map, open_tokens
from viz_core.lab.pictures import token_over_patches
from viz_core.maps.measures import mean_attention_distance
from viz_core.maps.rollout import attention_rollout, gradient_relevance
from viz_core.models.vit import PatchEmbedding, ViT, ViTBlock, ViTMLP
from viz_core.pretrained import shipped
from viz_core.view.shipped import initial_state
from viz_core.view.state import ViewState

chapter = Chapter("vision-transformer")
chapter.question()
chapter.definition()
with chapter.card("main", has_picture=False, has_question=True):
    with chapter.main_controls():
        chosen = chapter.require(choose_model(chapter))
        menu = heads_menu(chapter, lazy=True)
    with st.container(horizontal=True, vertical_alignment="bottom", key="picture"):
        picture_inputs = chapter.require(choose_picture(chapter, chosen))
        broken = chapter.break_it("shuffled", "no-positions") if picture_inputs.found.probabilities else ""
    with st.container(key="prediction"):
        prediction(chapter, picture_inputs, broken)
    warn_of_weights(picture_inputs.request.model)
    maps = st.container(key="stage")

names = HeadNames.of(picture_inputs.found.trace)
off: tuple[str, ...] = ()
contribution_kind = chapter.contribution_kind()
if menu.is_drawn:
    with menu.block():
        off = head_switches(chapter, names)
        contribution_kind = chapter.contributions_choice()
without = names.read(off)
if off:
    with maps:
        show_without(chapter, picture_inputs, off, without)
second, inputs = maps_without(chapter, picture_inputs, off, without, contribution_kind) if off else ((), ("", ""))
with maps, st.container(key="waiting"):  # messages come and go here, and move nothing below them, nor take its focus
    groups = picture_maps(picture_inputs.request, current_language())
    shown = (
        picture_maps(picture_inputs.request, current_language(), contribution_kind=contribution_kind)
        if contribution_kind
        else groups
    )
drawn: list[ViewState] = []  # by this visit's last run of the whole page, and of its view since


def open_map_and_head() -> None:
    """Draw the view. Alone of the page it runs again for another patch or head.

    An open section or menu shows what it does, and a head that is switched changes the page: then all of it runs.
    """
    switched = names.read(st.session_state.get(chapter.controls.key("without"), off)) != without
    if drawn and (switched or menu.is_drawn or chapter.any_open(sections)):
        st.rerun()
    drawn[:] = [
        chapter.attention_view(
            shown,
            initial_state(groups),
            second=second,
            inputs=inputs,
            run_source=picture_inputs.request.run_source,
            off=without,
            on_switch=partial(toggle_head, chapter, names),
            on_cell=partial(open_pair, groups),
            contribution_kind=contribution_kind,
        )
    ]


def token() -> int:
    """Return the token whose attention is shown."""
    return token_read(drawn[0])


def every_head() -> None:
    """Draw distance and entropy of every head, and check that their maps are weights."""
    heads(chapter, picture_inputs, drawn[0])
    with chapter.claim_row("rows"):
        count = sum(call.num_heads for call in picture_inputs.found.trace)
        chapter.claim("rows", lambda: row_error(groups), ROUNDING, heads=count)


def worth() -> None:
    """Draw what each head is worth, where it was measured."""
    if names.read(st.session_state.get(chapter.controls.key("without"), off)) != without:  # a click changes the page
        st.rerun()
    card = shipped_card(picture_inputs)
    measured = head_importance(card.name, shipped.CHECKPOINTS) if card else None
    head_importance_grid(chapter, picture_inputs.facts.title, measured, names, off)


def training_and_reliability() -> None:
    """Draw how reliable this prediction is, and how the model was trained."""
    if picture_inputs.found.probabilities:
        reliability(chapter, picture_inputs)
    training(chapter, picture_inputs)


def book() -> None:
    """Draw the exercises of the book."""
    for name in ("side", "average", "settings"):
        chapter.exercise(name)


def sources_and_code() -> None:
    """Draw the sources, the code and the downloads."""
    chapter.text("licence")
    chapter.sources({"positions": None, "abnar": None, "darcet": None, "settings": None})
    chapter.code(PatchEmbedding, ViTMLP, ViTBlock, ViT, attention_rollout, gradient_relevance, mean_attention_distance)
    chapter.downloads(
        {
            "weights": lambda: open_map(groups, drawn[0]).numpy(),
            "token_attention": lambda: evaluate(picture_inputs.request, token_over_patches, token()).numpy(),
        },
        **open_tokens(groups, drawn[0]),
    )


sections: dict[str, Callable[[], None]] = {
    "patches": lambda: patches(chapter, picture_inputs, token()),
    "positions": lambda: positions(chapter, picture_inputs, token()),
    "order": lambda: permutation(chapter, picture_inputs),
    "lab": lambda: patch_lab(chapter, picture_inputs, drawn[0], token()),
    "heads": every_head,
    "worth": worth,
    "products": lambda: score_products(chapter, picture_inputs.request, groups, drawn[0]),
    "training": training_and_reliability,
    "book": book,
    "code": sources_and_code,
}
with maps:
    chapter.fragment(open_map_and_head)
chapter.send_picture()
if menu.is_drawn:
    with menu.block():
        head_buttons(chapter, names, groups, drawn[0], off)
chapter.exercise("bag")
chapter.takeaways()
chapter.next()
chapter.deeper(sections)
