"""Transformers for vision: a real ViT on any picture, every head over it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import streamlit as st

from pages.vision_transformer.inputs import (
    ROUNDING,
    PictureInputs,
    choose_model,
    choose_picture,
    shipped_card,
    token_read,
)
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
from viz_core.maps.distance import mean_attention_distance
from viz_core.maps.rollout import attention_rollout, gradient_relevance
from viz_core.models.vit import PatchEmbedding, ViT, ViTBlock, ViTMLP
from viz_core.pretrained import shipped
from viz_core.trace.output_edits import HeadsOff
from viz_core.view.map_group import MapGroup
from viz_core.view.shipped import initial_state
from viz_core.view.state import ViewState

Value = TypeVar("Value")

chapter = Chapter("vision-transformer")
chapter.question()
chapter.definition()


@dataclass
class Shown:
    """What the card and the view show now. The sections below are drawn when they are opened, and read it then.

    Attributes:
        off: the names of the heads that are off.
        without: the sites and numbers of these heads.
    """

    picture: PictureInputs
    names: HeadNames
    off: tuple[str, ...]
    without: HeadsOff
    groups: tuple[MapGroup, ...]
    view: ViewState

    @property
    def token(self) -> int:
        """The token whose row is read."""
        return token_read(self.view)


drawn: list[Shown] = []  # of this visit's last run of the whole page, and of its card and view since
begun: list[bool] = []  # once the whole page has run to them


def required(value: Value | None) -> Value:
    """Return the value; without one, end the page here, and take away what is below of a picture before."""
    if value is None and drawn:
        st.rerun()
    return chapter.require(value)


def picture_and_maps() -> None:
    """The card and the view. Alone of the page they run again for another patch, head or picture.

    An open section shows what they do, and below a missing picture there is nothing: then the whole page runs.
    """
    if begun and (not drawn or chapter.any_open(sections)):
        st.rerun()
    begun[:] = [True]
    with chapter.card("main"):
        with chapter.main_controls():
            chosen = required(choose_model(chapter))
            menu = heads_menu(chapter)
        with st.container(horizontal=True, vertical_alignment="bottom", key="picture"):
            picture_inputs = required(choose_picture(chapter, chosen))
            broken = chapter.break_it("shuffled", "no-positions") if picture_inputs.found.probabilities else ""
        prediction(chapter, picture_inputs, broken)
        warn_of_weights(picture_inputs.request.model)

    names = HeadNames.of(picture_inputs.found.trace)
    with menu():
        off = head_switches(chapter, names)
        contribution_kind = chapter.contributions_choice()
    without = names.read(off)
    if off:
        show_without(chapter, picture_inputs, off, without)
    second, inputs = maps_without(chapter, picture_inputs, off, without, contribution_kind) if off else ((), ("", ""))
    with st.container(key="waiting"):  # messages come and go here, and move nothing below them, nor take its focus
        groups = picture_maps(picture_inputs.request, current_language())
        shown = (
            picture_maps(picture_inputs.request, current_language(), contribution_kind=contribution_kind)
            if contribution_kind
            else groups
        )
    view = chapter.attention_view(
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
    with menu():
        head_buttons(chapter, names, groups, view, off)
    drawn[:] = [Shown(picture_inputs, names, off, without, groups, view)]


def every_head(now: Shown) -> None:
    """Draw distance and entropy of every head, and check that their maps are weights."""
    heads(chapter, now.picture, now.view)
    with chapter.claim_row("rows"):
        count = sum(call.num_heads for call in now.picture.found.trace)
        chapter.claim("rows", lambda: row_error(now.groups), ROUNDING, heads=count)


def worth(now: Shown) -> None:
    """Draw what each head is worth, where it was measured."""
    off = st.session_state.get(chapter.controls.key("without"), now.off)
    if now.names.read(off) != now.without:  # a click changes the page
        st.rerun()
    card = shipped_card(now.picture)
    measured = head_importance(card.name, shipped.CHECKPOINTS) if card else None
    head_importance_grid(chapter, now.picture.facts.title, measured, now.names, now.off)


def training_and_reliability(now: Shown) -> None:
    """Draw how reliable this prediction is, and how the model was trained."""
    if now.picture.found.probabilities:
        reliability(chapter, now.picture)
    training(chapter, now.picture)


def book(_now: Shown) -> None:
    """Draw the exercises of the book."""
    for name in ("side", "average", "settings"):
        chapter.exercise(name)


def sources_and_code(now: Shown) -> None:
    """Draw the sources, the code and the downloads."""
    chapter.text("licence")
    chapter.sources({"positions": None, "abnar": None, "darcet": None, "settings": None})
    chapter.code(PatchEmbedding, ViTMLP, ViTBlock, ViT, attention_rollout, gradient_relevance, mean_attention_distance)
    chapter.downloads(
        {
            "weights": lambda: open_map(now.groups, now.view).numpy(),
            "token_attention": lambda: evaluate(now.picture.request, token_over_patches, now.token).numpy(),
        },
        **open_tokens(now.groups, now.view),
    )


sections: dict[str, Callable[[Shown], None]] = {
    "patches": lambda now: patches(chapter, now.picture, now.token),
    "positions": lambda now: positions(chapter, now.picture, now.token),
    "order": lambda now: permutation(chapter, now.picture),
    "lab": lambda now: patch_lab(chapter, now.picture, now.view, now.token),
    "heads": every_head,
    "worth": worth,
    "products": lambda now: score_products(chapter, now.picture.request, now.groups, now.view),
    "training": training_and_reliability,
    "book": book,
    "code": sources_and_code,
}
chapter.fragment(picture_and_maps)
chapter.exercise("bag")
chapter.takeaways()
chapter.next()
chapter.deeper({name: partial(lambda draw: draw(drawn[0]), draw) for name, draw in sections.items()})
