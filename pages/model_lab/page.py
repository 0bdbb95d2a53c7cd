"""The model lab: any model of Hugging Face, your own text or picture, every head."""

from functools import partial

import streamlit as st

from pages.model_lab.comparisons import (
    changed_heads,
    choose_heads_off,
    maps_of_other,
    maps_without,
    show_without,
    takes_two_sentences,
    two_sentences,
)
from pages.model_lab.inputs import input_names, read_inputs, read_second_inputs, run
from pages.model_lab.media import in_picture, show_similarity, speech
from pages.model_lab.models import choose_model, load, model_card
from pages.model_lab.parts import positions, sinks
from pages.model_lab.result import (
    checked_maps,
    choose_error,
    lens,
    link_to_heads,
    link_to_vision,
    next_words,
    notes,
    outcome,
)
from serving.requests.lab import hub_offer
from ui.blocks.heads_off import head_buttons, heads_menu, toggle_head
from ui.blocks.score_products import open_pair, score_products
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate, evaluate_model, map_groups, warn_of_weights
from ui.text.markdown import escape
from ui.text.words import current_language, load_words
from ui.widgets.view_link import ViewLink, open_map, open_tokens, read_link
from viz_core.hub.attention import attention_forward
from viz_core.lab.runs import position_schemes, shows_contributions, windows
from viz_core.maps.fingerprints import measure_layer
from viz_core.trace import attend, attention_weights
from viz_core.view.hub import initial_state

chapter = Chapter("model-lab")
chapter.question()
offer = hub_offer()
main = st.container(border=True, key="card-main")
with main, st.container(gap="xsmall", key="inputs"):
    model = chapter.require(choose_model(chapter, offer))
    card = chapter.require(load(chapter, model))
    row = st.container(horizontal=True, vertical_alignment="bottom", key="read")
    with row:
        inputs = read_inputs(chapter, model, card)
    found, last_inputs = run(inputs) if inputs else None, chapter.controls.key("last-inputs")
    last = st.session_state.get(last_inputs)
    if inputs and not found and last and last.model == model and last.inputs.text:
        inputs, found = last, run(last)
        st.caption(load_words("translation")("kept", text=escape(last.inputs.text)))
    if found is None:
        model_card(chapter, card)
    request, result = chapter.require(inputs), chapter.require(found)
    st.session_state[last_inputs] = request
    outcome(chapter, card, result)
with row:
    menu = heads_menu(chapter)
with main:
    waiting = st.container(key="waiting")  # messages come and go here, and move nothing below them, nor take its focus
    above_maps, maps = st.container(key="above-maps"), st.container(key="stage")
    with st.container(horizontal=True, vertical_alignment="center"):
        notes(chapter, request, result)
        if "vision-chapter" in card.kind_class.features:
            link_to_vision(chapter, card)
        if card.kind_class.input_label != "sound":
            link_to_heads(chapter, model)
    broken = choose_error(chapter, card)

language = current_language()
with waiting:
    groups = map_groups(request, "model-lab", language)
with above_maps:
    warn_of_weights(model)
with menu.block():
    heads, off = choose_heads_off(chapter, card, request)
    contribution_kind = chapter.contributions_choice() if evaluate(request, shows_contributions) else ""
    other = read_second_inputs(chapter, offer, card, request, result)
with waiting:
    shown = map_groups(request, "model-lab", language, contribution_kind)
without = heads.read(off)
with maps:
    if off:
        show_without(chapter, card, request, result, off, without)
    view = initial_state(groups, result)
    if broken:
        other = None  # nothing is compared with a broken map
        view, _ = read_link(ViewLink(*(st.query_params.get(name) for name in ("head", "pin", "look"))), groups, view)
    else:
        if other and run(other):
            second, beside = maps_of_other(request, other, groups, language, contribution_kind)
            names = input_names(chapter, request, other)
        else:
            other, beside = None, ()
            second, names = maps_without(chapter, request, off, without, contribution_kind) if off else ((), ("", ""))
        view = chapter.attention_view(
            shown,
            view,
            second=second,
            inputs=names,
            beside=beside,
            run_source=request.run_source,
            off=without if heads.sites else None,
            on_switch=partial(toggle_head, chapter, heads),
            on_cell=partial(open_pair, groups),
            contribution_kind=contribution_kind,
            folded=False,
        )
    checked_maps(chapter, card, request, result, groups, view, broken)
    if result.sound is not None:
        with above_maps:
            speech(chapter, request, result, result.sound, view)
    if heads.sites:
        with menu.block():
            head_buttons(chapter, heads, groups, view, off)
    if result.patches:
        in_picture(chapter, request, result, view)
    elif "similarities" in card.kind_class.features:
        show_similarity(chapter, request, result)
    if other and other.model != model:
        changed_heads(chapter, request, other, groups)
chapter.send_picture()
chapter.frame.mount_terms()


def code() -> None:
    """Sources, the library's code, and the open map as a file."""
    chapter.sources({"induction": None, "aligning": None, "sink-logit": None})
    chapter.code(attention_forward, attention_weights, measure_layer, attend)
    chapter.downloads({"weights": lambda: open_map(groups, view).numpy()}, **open_tokens(groups, view))


sections = {
    "card": lambda: model_card(chapter, card, evaluate(request, windows), len(result.tokens)),
    "words": (lambda: next_words(chapter, request, result)) if card.head == "words" else None,
    "lens": (lambda: lens(chapter, card, request)) if card.kind_class.has_lens(card.head) else None,
    "two-sentences": (lambda: two_sentences(chapter, card, model)) if takes_two_sentences(card) else None,
    "products": lambda: score_products(chapter, request, groups, view, rotated="rotary" in card.positions),
    "sinks": lambda: sinks(chapter, card, request, result, groups, view),
    "positions": lambda: positions(chapter, card, evaluate_model(model, position_schemes)),
    "code": code,
}
chapter.deeper({name: draw for name, draw in sections.items() if draw is not None})
