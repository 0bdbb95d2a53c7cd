"""A slider that moves by itself: words and picture follow it as if a hand had moved it."""

from __future__ import annotations

import time

import streamlit as st

SECONDS = 1.4  # that a step is shown


class Slideshow:
    """Plays a slider from 0 to its last step, and stops there or where someone takes the slider.

    Args:
        key: of the slider, whose state is the step.
        last: the last step.
    """

    def __init__(self, key: str, last: int) -> None:
        self.key = key
        self.last = last
        self._kept = f"{key}-played"  # the step it set last, and when

    @property
    def every(self) -> float | None:
        """How often to look whether the next step is due, in seconds; None while it stands still."""
        return SECONDS if self._kept in st.session_state else None

    def button(self, label: str) -> None:
        st.button(label, key=f"{self.key}-play", icon=":material/play_arrow:", on_click=self._begin)

    def step(self) -> None:
        """Go a step on if one is due; to be said before the slider is drawn."""
        if self._kept not in st.session_state:
            return
        played, at = st.session_state[self._kept]
        if played == self.last or st.session_state.get(self.key, 0) != played:
            del st.session_state[self._kept]
            st.rerun()  # the whole page: only that ends the looking
        if time.monotonic() - at >= 0.9 * SECONDS:
            self._set(played + 1)

    def _begin(self) -> None:
        self._set(0)

    def _set(self, step: int) -> None:
        st.session_state[self.key] = step
        st.session_state[self._kept] = (step, time.monotonic())
