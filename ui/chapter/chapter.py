"""The chapter: what its page is made of, from the question to the downloads."""

import inspect
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from serving.compute.turns import page_turns
from serving.settings import settings
from ui.chapter.claims import Claims
from ui.chapter.deeper import Deeper
from ui.chapter.downloads import DownloadButtons
from ui.chapter.exercises import Exercises, chapter_to_repeat, draw_review
from ui.chapter.figures import Figures
from ui.chapter.frame import Frame
from ui.chapter.parts import Parts
from ui.chapter.source_cards import SourceCards
from ui.streamlit_internals.batched_messages import flush_messages
from ui.streamlit_internals.script_run import is_served
from ui.text.model_card import model_card_text
from ui.text.words import load_words
from ui.widgets.controls import Controls
from viz_core.pretrained import ModelCard


def reference_address(function: Callable[..., Any]) -> str | None:
    """Return the address of a public name's reference; None if no site is set or the name is not public.

    A name is described on the page of the innermost package around its module that lists it in `__all__`.
    """
    site, module, name = settings().docs, function.__module__, function.__name__
    parts = module.split(".")
    packages = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    package = next((each for each in packages if name in getattr(sys.modules.get(each), "__all__", ())), None)
    if not site or package is None or module.startswith("viz_core.lessons."):  # these are a chapter's own
        return None
    page = package.partition(".")[2] or "index"
    return f"{site.rstrip('/')}/reference/{page}.html#{module}.{name}"


Value = TypeVar("Value")
_PAINT = 0.1  # seconds that a browser needs to paint
_PICTURE = 0.65  # and to draw the first picture of a page, before it is given all that is below
_PAINTED = "painted"  # the page whose first picture was sent last


class Chapter(Figures, Claims, Exercises, SourceCards, Deeper):
    """One chapter: its frame and controls, and every kind of content that its page may have."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.frame = frame = Frame(name)
        self.words, self.common = frame.words, frame.common
        self.controls = Controls(frame.words, frame.sharing)
        self.parts = parts = Parts(name, self.controls, frame.scripts)
        # What pages use most has a name here, so that a page reads like its table of contents.
        self.definition, self.heading, self.text, self.next = frame.definition, frame.heading, frame.text, frame.next
        self.lazy, self.fragment, self.expander = parts.lazy, parts.fragment, parts.expander
        downloads = DownloadButtons(frame.words, frame.common)
        self.downloads, self.download_table, self.download_text = downloads.draw, downloads.table, downloads.text

    def question(self) -> None:
        """Draw the question that the page answers; beside the title, behind a button, those on an earlier chapter."""
        earlier = chapter_to_repeat(self.name)
        if earlier is not None:
            self.fragment(lambda: self._repeat(earlier))
        self.frame.question()

    def _repeat(self, chapter: str) -> None:
        with st.container(key="repeat"):
            label = self.common("review.start")
            popover = st.popover(label, type="tertiary", icon=":material/replay:", on_change="rerun", key="repeat-open")
            if popover.open:
                with popover:
                    st.markdown(self.common("review.on", title=load_words(chapter).menu))
                    draw_review([chapter], "questions", "repeat-questions")

    def require(self, value: Value | None) -> Value:
        """Return the value; if it is None, end the page here. What is drawn above says why there is none."""
        if value is None:
            st.stop()
        return value

    @contextmanager
    def card(self, name: str, has_picture: bool = True, has_question: bool = False) -> Iterator[None]:
        """Frame a figure and its controls; what breaks it (`break_it`) is offered below it.

        Args:
            has_picture: whether the figure is drawn by the end of the block; else the page calls `send_picture`.
            has_question: whether the next exercise is about this figure: it is drawn between it and what breaks it.
        """
        outer = self._below_figure
        frame = st.container(border=True, key=f"card-{name}")
        with st.container(key=f"after-{name}") if has_question else frame:
            body = frame if has_question else st.container()
            self._question_place = st.container() if has_question else None
            self._below_figure = st.container(key=f"breaks-{name}")
        try:
            with body:
                yield
        finally:
            self._below_figure = outer
        if has_picture:
            self.send_picture()

    def send_picture(self) -> None:
        """Send a page's first picture, which the browser draws before it is given all that is below."""
        if st.session_state.get(_PAINTED) != self.name:
            st.session_state[_PAINTED] = self.name
            flush_messages(_PICTURE)

    def main_controls(self) -> DeltaGenerator:
        """Return a row for the controls of the main figure; on a phone it stays in reach while the page scrolls."""
        return st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="main-controls")

    def tabs(self, **sections: Callable[[], None] | None) -> None:
        """Draw tabs labelled `option.NAME`, without those that are None. Only the open one is drawn."""
        drawn = {name: draw for name, draw in sections.items() if draw is not None}
        for tab, draw in zip(self.controls.tabs(tuple(drawn)), drawn.values(), strict=True):
            if tab.open:
                with tab:
                    draw()

    def model_card(self, name: str, label: str, card: ModelCard) -> None:
        """Draw a shipped model's card in an expander, with the file beside its weights as a download."""

        def show() -> None:
            st.markdown(model_card_text(card))
            if card.text:
                self.download_text(f"{name}-original", self.common("card-original"), f"{card.name}.md", card.text)

        self.expander(name, label, ":material/description:", show)

    def code(self, *functions: Callable[..., Any]) -> None:
        """Draw the source of the library functions that drew the figures, in an expander."""

        def show() -> None:
            for function in functions:
                address = reference_address(function)
                link = f" [{self.common('reference')}]({address})" if address else ""
                st.caption(f"`{function.__module__}`{link}")
                st.code(inspect.getsource(function), language="python", wrap_lines=True)  # no scrolling without a mouse

        self.expander("code", self.common("code"), ":material/code:", show)

    def flush(self) -> None:
        """Send what is drawn so far and let the browser paint it, before the charts below occupy it.

        While a reader drags a slider the figure above follows each step, and the rest follows when they pause.
        """
        if is_served():
            flush_messages()
            with page_turns.pause():
                time.sleep(_PAINT)
