"""What every page has around it, home too: its words, the window's edge, the device. It imports nothing heavy.

Home is what a fresh server is asked for first: whoever opens it does not wait for torch and pandas.
"""

from __future__ import annotations

import json
import os
import re
import sys
from itertools import count

import streamlit as st

from serving.process.garbage_collection import freeze_imported_modules
from ui.chapter.contents import all_chapters, page
from ui.chapter.tour import mount_tour, report_unknown_step
from ui.text.errors import explain
from ui.text.words import Words, load_words
from ui.widgets.component import component
from ui.widgets.language import language_select
from ui.widgets.sharing import Sharing
from viz_core.runtime.assets import ASSETS

_PARTS = ASSETS / "components"
_LOOK = 0.5  # seconds
_LOOKS = 20  # after which a page imports torch itself: nobody else does
_keep_history = component("history")  # the Back button goes through what was typed
_let_present = component("present", in_page=True)


class Frame:
    """Title, sidebar and words of one page."""

    def __init__(self, name: str) -> None:
        freeze_imported_modules()  # the page has imported what it needs
        self.name = name
        self.words: Words = load_words(name)
        self.common: Words = load_words("common")
        st.html(_PARTS / "house.css")
        self.unseen = st.container(key="unseen")  # for scripts that show nothing
        with self.unseen:
            seen = "" if name == "home" else name
            _keep_history(key="history-mount", data={"seen": seen, "language": self.words.language})
        self._sidebar()
        st.title(self.words.title, anchor=False)
        report_unknown_step(name)

    def question(self) -> None:
        """The question the page answers, under its title."""
        with st.container(key="question"):
            st.markdown(self.words("question"))

    def heading(self, name: str) -> None:
        st.header(self.words(f"heading.{name}"), anchor=name)

    def text(self, name: str, **values: object) -> None:
        """A section of prose or mathematics."""
        st.markdown(self.words(name, **values))

    def document(self, text: str) -> None:
        """A model's card: a text with headings of its own, which go below the page's."""
        st.caption(self.common("card-language"))
        st.markdown(re.sub(r"^#", "###", text, flags=re.MULTILINE))

    def next(self) -> None:
        """The chapter that follows, and why it does; after the last one, home."""
        order = all_chapters()
        after = order[(order.index(self.name) + 1) % len(order)]
        with st.container(border=True, key="next"):
            st.markdown(load_words("home")(f"next.{after}"))
            link = page(after)
            st.page_link(link, label=self.common("next", title=link.title), icon=":material/arrow_forward:")

    def device(self) -> None:
        """What the models run on. Only torch can say: on a fresh server the page comes first, and then the device."""
        if _knows_device():
            self._tell_device()
            return
        looks = count()

        @st.fragment(run_every=_LOOK)
        def wait() -> None:
            if next(looks) >= _LOOKS:
                import viz_core.runtime.device  # noqa: F401
            if _knows_device():
                st.rerun()
            st.badge(self.common("device-awaited"), icon=":material/memory:", color="gray")

        wait()

    def _tell_device(self) -> None:
        from viz_core.runtime.device import best_device, describe_device

        try:
            device = best_device()
            cores = self.common("device-cpu", count=os.cpu_count())
            named = cores if device.type == "cpu" else describe_device(device)
            st.badge(named, icon=":material/memory:", color="gray")
        except ValueError as error:  # ATLAS_DEVICE names one that is not here
            st.error(explain(error), icon=":material/memory:")

    def _sidebar(self) -> None:
        """The name above the table of contents; the device and how to share below it."""
        st.logo(_PARTS / "wordmark.svg", icon_image=_PARTS / "logo.svg", size="large")
        with st.sidebar, st.container(key="sidebar-foot"):
            self.device()
            language_select(self.common)
            self.sharing = Sharing(self.words)
            mount_tour(self.name)
            if self.name != "home":
                _let_present(key="present", data=json.dumps(self.common.group("present")).encode())


def _knows_device() -> bool:
    """Whether the module is here: from its first line on, but what it defines only once it has imported torch."""
    return hasattr(sys.modules.get("viz_core.runtime.device"), "describe_device")
