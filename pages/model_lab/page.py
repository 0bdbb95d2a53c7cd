"""The model lab: any model of Hugging Face, your own text or picture, every head."""

import streamlit as st

from hosting.settings import settings
from pages.model_lab.inputs import ask_input, ask_model, ask_second, input_names, load, run
from pages.model_lab.models import hub_look, hub_maps, hub_schemes
from pages.model_lab.parts import claims, fingerprints, model_card, next_words, outcome
from pages.model_lab.positions import positions
from pages.model_lab.vision import link_to_vision
from ui.chapter import Chapter
from ui.words import current_language
from viz_core.hub.attention import attention_forward
from viz_core.maps.fingerprints import measure_layer
from viz_core.trace import attend
from viz_core.view.hub import first_look
from viz_core.view.translation import open_map

chapter = Chapter("model-lab")
chapter.question()
wanted = ask_model(chapter, settings())
card = load(chapter, wanted) if wanted else None
if wanted is None or card is None:
    st.stop()
model_card(chapter, card)

asked = ask_input(chapter, wanted, card)
result = run(chapter, asked) if asked else None
if asked is None or result is None:
    st.stop()
outcome(chapter, card, asked, result)
if card.kind == "vision":
    link_to_vision(chapter, card)

language = current_language()
groups = hub_maps(asked, language)
other = ask_second(chapter, asked)
compared = run(chapter, other) if other else None
view = chapter.attention_view(
    groups,
    first_look(groups),
    second=hub_maps(other, language) if other and compared else (),
    inputs=input_names(chapter, asked, other) if other and compared else ("", ""),
)
claims(chapter, card, result, hub_look(asked, "residuals"))

chapter.heading("further")
if card.head == "words":
    chapter.tabs(
        words=lambda: next_words(chapter, asked, result),
        positions=lambda: positions(chapter, card, hub_schemes(wanted)),
        fingerprints=lambda: fingerprints(chapter, groups, view),
    )
else:
    chapter.tabs(
        positions=lambda: positions(chapter, card, hub_schemes(wanted)),
        fingerprints=lambda: fingerprints(chapter, groups, view),
    )

chapter.exercise("bytes")
chapter.code(attention_forward, attend, measure_layer)
chapter.downloads(weights=lambda: open_map(groups, view).numpy())
