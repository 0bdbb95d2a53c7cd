"""Every position scheme on the same tokens: what order changes, side by side, one at a time, and what each costs."""

from functools import partial

import streamlit as st

from pages.position_embeddings.parts import one_scheme
from pages.position_embeddings.sections import ANSWERS, across_models, costs, gallery, insight, side_by_side, sources
from pages.position_embeddings.tokens import choose_tokens
from ui.chapter.chapter import Chapter
from viz_core.lessons.position_embeddings.order import SharedLayer, order_changes
from viz_core.positional import BY_NAME, SCHEMES

chapter = Chapter("position-embeddings")
chapter.question()
chapter.definition()
with chapter.card("main", has_question=True):
    row, notes = chapter.main_controls(), st.container()
    with row:
        for_tokens = st.container()
        with st.container():
            shown = chapter.controls.select("main-scheme", tuple(BY_NAME), "sinusoidal")
        with st.container():
            chapter.controls.slider("order", 1, 20, 1)
        inputs = choose_tokens(chapter, for_tokens, notes)
        broken = chapter.break_it("no-order", part="order")
    chapter.side_by_side(broken, lambda setting: insight(chapter, inputs.as_typed, shown, setting))
    chapter.guidance("order-seen")

gallery(chapter, inputs)
chapter.exercise("bag", marks=ANSWERS)
chapter.takeaways()
chapter.next()


def book_exercises() -> None:
    """Draw the book's three questions on positions."""
    for name in ("deep", "learnable", "offsets"):
        chapter.exercise(name)


def library() -> None:
    """Draw the source cards, the library's code and the downloads."""
    sources(chapter)
    chapter.code(*(part for scheme in SCHEMES for part in scheme.code), SharedLayer, order_changes)
    chapter.downloads(
        {scheme.name.replace("-", "_"): partial(inputs.layer.position_scores, scheme) for scheme in SCHEMES[1:]}
    )


chapter.deeper(
    {
        "schemes": lambda: side_by_side(chapter, inputs),
        "closer": lambda: one_scheme(chapter, inputs),
        "costs": lambda: costs(chapter, inputs),
        "across": lambda: across_models(chapter),
        "experiments": book_exercises,
        "library": library,
    }
)
