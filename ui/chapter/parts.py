"""Parts of a page: drawn when visible, run by themselves as fragments, or drawn once opened; each with unique keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ui.chapter.damaged_assets import report_damaged_assets
from ui.chapter.lazy_parts import LazyParts
from ui.widgets.controls import Controls

Value = TypeVar("Value")
Deferred: TypeAlias = Value | Callable[[], Value]
"""A value, or a function that computes it once it is needed."""


def resolve(value: Deferred[Value]) -> Value:
    """Return the value, computing it if it is deferred."""
    return value() if callable(value) else value


class Parts:
    """The parts of one page that need not run whenever the page runs."""

    def __init__(self, page: str, controls: Controls, scripts: DeltaGenerator) -> None:
        """
        Args:
            page: name of the page.
            controls: give expanders their keys.
            scripts: invisible container for the component that reports which parts are visible.
        """
        self._page, self._controls = page, controls
        self._lazy = LazyParts(page)
        with scripts:
            self._lazy.watch()
        self._keys: Counter[str] = Counter()

    def lazy(
        self, name: str, draw: Callable[[], None], height: int, placeholder: Callable[[], None] = lambda: None
    ) -> None:
        """Draw a part once its place comes near the window.

        It holds no controls and no clickable figures: see `ui.chapter.lazy_parts`.

        Args:
            height: pixels reserved until it is drawn.
            placeholder: draws what is shown until then.
        """
        self._lazy.add(f"{self._page}-{name}", self._repeatable(draw), placeholder, height)

    def fragment(self, draw: Callable[[], None], every: float | None = None) -> None:
        """Draw a part that reruns by itself when its own controls change, and every so many seconds if given."""
        st.fragment(self._repeatable(draw), run_every=every)()

    def expander(
        self, name: str, label: str, icon: str | None, draw: Callable[[], None], expanded: bool = False
    ) -> None:
        """Draw an expander whose content is drawn once it is open; the URL holds whether it is.

        Args:
            expanded: whether it is open where neither the URL nor the reader says so.
        """

        def show() -> None:
            key = self._controls.key(name)
            with st.expander(label, expanded, icon=icon, key=key, on_change="rerun", bind="query-params") as content:
                if content.open:
                    draw()

        self.fragment(show)

    def unique_key(self, key: str) -> str:
        """Return the key, numbered if this page used it before: several badges or figures may share a name."""
        self._keys[key] += 1
        return key if self._keys[key] == 1 else f"{key}-{self._keys[key]}"

    def _repeatable(self, draw: Callable[[], None]) -> Callable[[], None]:
        """Return `draw` such that each run gives its figures and badges the same keys."""
        used = self._keys.copy()

        def run() -> None:
            self._keys = used.copy()
            with report_damaged_assets():
                draw()

        return run
