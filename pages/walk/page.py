"""The walk: one sentence or picture through a whole model, from its tokens to the word that is chosen."""

import streamlit as st

from ui.blocks.translation import or_explain
from ui.blocks.walk import WalkInputs, draw_walk
from ui.chapter.chapter import Chapter
from ui.chapter.contents import all_chapters, page
from ui.compute.pictures import sample_picture
from ui.text.markdown import escape
from ui.text.words import load_words
from ui.widgets.inputs import set_text, shared_text_input
from viz_core.pretrained.samples import GARMENTS, default_beginning, sentence

chapter = Chapter("walk")
chapter.question()
controls = chapter.controls


def inputs() -> WalkInputs:
    """Draw the model's choice and its input; return what is chosen."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="walk-inputs"):
        kind = controls.choice("model", ("writer", "translator", "picture"), "writer")
        if kind == "picture":
            return WalkInputs(kind, picture=sample_picture(controls.select("picture", GARMENTS, GARMENTS[0])))
        if kind == "translator":
            return WalkInputs(kind, shared_text_input(controls, "text", sentence("cat"), chapter.words("placeholder")))
        text = controls.text("start", default_beginning(), max_chars=120)
        with controls.more():
            temperature = controls.slider("temperature", 0.0, 2.0, 0.0, 0.1)
            top_k = int(controls.slider("top-k", 0, 50, 0, 1))
        return WalkInputs(kind, text, temperature=temperature, top_k=top_k)


def restore(before: WalkInputs) -> None:
    """Set the controls to other inputs of the same model."""
    if before.kind == "translator":
        set_text(controls.key("text"), before.text)
    elif before.kind == "writer":
        values = {"start": before.text, "temperature": before.temperature, "top-k": before.top_k}
        st.session_state.update({controls.key(name): value for name, value in values.items()})


def walk() -> None:
    """Draw the walk of the chosen input."""
    chosen, key = inputs(), controls.key("last")
    if or_explain(chapter, lambda: draw_walk(chosen, restore)):
        st.session_state[key] = chosen
    elif (last := st.session_state.get(key)) and last.kind == chosen.kind:
        st.caption(load_words("translation")("kept", text=escape(last.text)))
        draw_walk(last, restore)


chapter.fragment(walk)
chapter.text("hint")
link = page(all_chapters()[1])
st.page_link(link, label=chapter.common("next", title=link.title), icon=":material/arrow_forward:")
