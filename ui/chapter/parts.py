"""A page in parts: some wait until they are near the window, some run alone; each thing in them has its own key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import streamlit as st

from ui.chapter.damaged_assets import report_damaged_assets
from ui.chapter.frame import Frame
from ui.chapter.lazy_parts import NearParts
from ui.widgets.controls import Controls


class PartedFrame(Frame):
    """A frame with controls, and with parts that need not run whenever the page does."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        with self.unseen:
            self._parts = NearParts(name)
            self._parts.watch()
        self.controls = Controls(self.words, self.sharing)
        self._keys: Counter[str] = Counter()

    def lazy(self, name: str, draw: Callable[[], None], height: int) -> None:
        """A part of the page that is computed and sent once its place, of `height` pixels, comes near the window.

        No control stands in it, and no figure to click: see `ui.chapter.lazy_parts`.
        """
        self._parts.add(f"{self.name}-{name}", self._again(draw), lambda: None, height)

    def expander(self, name: str, label: str, icon: str, draw: Callable[[], None]) -> None:
        """A part behind a button; drawn once a reader opens it, and in the URL."""

        def show() -> None:
            key = self.controls.key(name)
            with st.expander(label, icon=icon, key=key, on_change="rerun", bind="query-params") as sheet:
                if sheet.open:
                    draw()

        self.fragment(show)

    def model_card(self, name: str, label: str, text: str) -> None:
        """What a model's card says, behind a button: it is long."""
        self.expander(name, label, ":material/description:", lambda: self.document(text))

    def fragment(self, draw: Callable[[], None], every: float | None = None) -> None:
        """A part of the page that runs alone when only its own controls move, and every so many seconds if asked."""
        st.fragment(self._again(draw), run_every=every)()

    def _again(self, draw: Callable[[], None]) -> Callable[[], None]:
        """The same, for it runs more than once: its figures and badges keep their keys."""
        used = self._keys.copy()

        def run() -> None:
            self._keys = used.copy()
            with report_damaged_assets():
                draw()

        return run

    def _unique(self, key: str) -> str:
        """The key, with a number where this page has used it before: several badges or figures may share words."""
        self._keys[key] += 1
        return key if self._keys[key] == 1 else f"{key}-{self._keys[key]}"
