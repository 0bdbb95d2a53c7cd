"""The model lab: any model of Hugging Face, your own text or picture, every head."""

import streamlit as st

from hosting.settings import settings
from ui.attention_view import attention_view
from ui.chapter import Chapter
from ui.model_lab import claims, fingerprints, model_card, next_words, outcome
from ui.model_lab_inputs import ask_input, ask_model, ask_second, input_names, load, run
from ui.model_lab_models import hub_maps, hub_residuals
from ui.model_lab_positions import positions
from ui.model_lab_vision import link_to_vision
from ui.words import current_language, load_words
from viz_core.figures.model_lab_maps import first_look
from viz_core.figures.translation import open_map
from viz_core.fingerprints import measure_layer
from viz_core.hub.attention import attention_forward
from viz_core.trace import attend

chapter = Chapter("model-lab")
chapter.question()
wanted = ask_model(chapter, settings())
model = load(chapter, wanted) if wanted else None
if wanted is None or model is None:
    st.stop()
model_card(chapter, model)

asked = ask_input(chapter, model)
result = run(chapter, wanted, *asked) if asked else None
if asked is None or result is None:
    st.stop()
outcome(chapter, model, result)
if model.card.kind == "vision":
    link_to_vision(chapter, model)

language = current_language()
groups = hub_maps(wanted, asked[0], language, asked[1])
other = ask_second(chapter, model, asked[0])
compared = run(chapter, wanted, *other) if other else None
view = attention_view(
    groups,
    load_words("attention-view").sections,
    default=first_look(groups),
    second=hub_maps(wanted, other[0], language, other[1]) if other and compared else (),
    inputs=input_names(chapter, asked[0], other[0]) if other and compared else ("", ""),
    key="maps",
    language=language,
)
chapter.look_for("maps")
claims(chapter, model, result, hub_residuals(wanted, *asked))

chapter.heading("further")
if model.engine.family.head == "words":
    chapter.tabs(
        words=lambda: next_words(chapter, model, result),
        positions=lambda: positions(chapter, model),
        fingerprints=lambda: fingerprints(chapter, groups, view),
    )
else:
    chapter.tabs(
        positions=lambda: positions(chapter, model),
        fingerprints=lambda: fingerprints(chapter, groups, view),
    )

chapter.exercise("bytes")
chapter.code(attention_forward, attend, measure_layer)
chapter.downloads(weights=open_map(groups, view).numpy())
