"""A sentence to point at, the way in, the gallery (every chapter with a picture), and the device of the models."""

import sys
from itertools import count
from typing import Any

import streamlit as st

from pages.home.gallery import chapter_card, mark_visited
from serving.compute.turns import page_turns
from ui.blocks.linked_sentences import compute, draw_sentences, recorded
from ui.chapter.contents import SECTIONS, chapters
from ui.chapter.frame import Frame
from ui.chapter.tour import tour_link
from ui.streamlit_internals.batched_messages import flush_messages
from ui.streamlit_internals.script_run import network
from ui.text.translations import device_name, explain
from ui.widgets.controls import Controls


def linked(text: str) -> dict[str, Any]:
    """Return what lights up of a sentence: the stored one's at once, another's when the model has read it."""
    stored = recorded()
    if text == stored["text"]:
        return stored
    from ui.blocks.translation import or_explain  # it brings torch, which a newcomer need not wait for

    return or_explain(home, lambda: compute(text, home.words.language)) or stored


@st.fragment  # another sentence changes nothing else
def sentence() -> None:
    """Draw two sentences to point at, and the line to type one in."""
    with page_turns.turn(network()):
        place = st.container(key="live-sentence")  # the sentence is typed below what it gives
        with st.container(key="own-sentence"):
            text = Controls(home.words).text("text", recorded()["text"], max_chars=200)
        with place:
            draw_sentences(home.words, linked(text))


_POLL_SECONDS = 0.5
_MAX_POLLS = 20  # after which the page imports torch itself


def device() -> None:
    """Say which device models run on. Only torch knows it, which a new server may not have imported yet."""
    if _knows_device():
        _say_device()
        return
    polls = count()

    @st.fragment(run_every=_POLL_SECONDS)
    def wait() -> None:
        if next(polls) >= _MAX_POLLS:
            import viz_core.runtime.device  # noqa: F401
        if _knows_device():
            st.rerun()
        st.caption(f":material/memory: {home.common('device-awaited')}")

    wait()


def _say_device() -> None:
    from viz_core.runtime.device import best_device, describe_device

    try:
        st.caption(f":material/memory: {device_name(describe_device(best_device()))}")
    except ValueError as error:  # ATLAS_DEVICE names one that this machine lacks
        st.error(explain(error), icon=":material/memory:")


def _knows_device() -> bool:
    """Whether the device module has finished importing torch: it defines its functions only after that."""
    return hasattr(sys.modules.get("viz_core.runtime.device"), "describe_device")


home = Frame("home")
home.question()
sentence()
with st.container(horizontal=True, key="begin"):
    tour_link()
    home.next()
flush_messages()
for section in SECTIONS:
    st.header(home.common(f"section.{section}"), anchor=section)
    with st.container(horizontal=True, key=f"gallery-{section}"):
        for name in chapters(section):
            chapter_card(home, name)
mark_visited(home)
device()
