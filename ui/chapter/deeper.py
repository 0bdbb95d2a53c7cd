"""Go deeper: the optional sections of a page, closed until the reader opens them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

from ui.chapter.parts import Parts
from ui.text.words import Words
from ui.widgets.controls import Controls

OPEN_ALL = "open-all"
"""The query parameter that opens every section."""


class Deeper:
    """The optional sections of one page. The URL holds which are open: PREFIX-open-NAME."""

    def __init__(self, words: Words, common: Words, controls: Controls, parts: Parts) -> None:
        self.words, self.common, self.controls = words, common, controls
        self._parts = parts

    def draw(self, sections: Mapping[str, Callable[[], None]]) -> None:
        """Draw a row for each section: `section.NAME` is its title, `summary.NAME` its one-line summary.

        A section is drawn once it is open, and reruns by itself when its own controls change. A link to #NAME opens it.
        """
        former = self._former_tab(sections)
        keys = [self.controls.key(f"open-{name}") for name in sections]
        with st.container(border=True, key="deeper"):
            with st.container(horizontal=True, vertical_alignment="center", key="deeper-head"):
                st.header(self.common("deeper"), anchor="deeper")
                everything = st.toggle(
                    self.common("deeper-all"), key=OPEN_ALL, bind="query-params", on_change=_open_or_close, args=(keys,)
                )
            for name, draw in sections.items():
                with st.container(key=f"section-{name}"):
                    self._parts.expander(f"open-{name}", self._label(name), None, draw, everything or name == former)

    def _label(self, name: str) -> str:
        return f"**{self.words(f'section.{name}')}** :gray[{self.words(f'summary.{name}')}]"

    def _former_tab(self, sections: Mapping[str, Callable[[], None]]) -> str:
        """Return the section that an older link names as a tab: PREFIX-section=NAME, or a former label of it."""
        key = self.controls.key("section")
        names = {name: name for name in sections}
        for name, labels in self.words.group("former-tab").items():
            names |= {label.strip().casefold(): name for label in labels.splitlines()}
        return names.get(st.query_params.get(key, "").casefold(), "")


def _open_or_close(keys: list[str]) -> None:
    for key in keys:
        st.session_state[key] = st.session_state[OPEN_ALL]
