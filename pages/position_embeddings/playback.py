"""A slider that plays: text and picture follow it as if the reader had moved it."""

from __future__ import annotations

import time

import streamlit as st

SECONDS = 1.4  # per step


class Slideshow:
    """Plays a slider from 0 to its last step, and stops there or when the reader moves the slider.

    Args:
        key: of the slider, whose state is the step.
        last: the last step.
    """

    def __init__(self, key: str, last: int) -> None:
        self.key = key
        self.last = last
        self._state_key = f"{key}-played"  # last step set, and its time

    @property
    def every(self) -> float | None:
        """Interval in seconds at which to check for the next step; None while it is not playing."""
        return SECONDS if self._state_key in st.session_state else None

    def button(self, label: str) -> None:
        st.button(label, key=f"{self.key}-play", icon=":material/play_arrow:", on_click=self._begin)

    def step(self) -> None:
        """Advance one step if it is due; call before drawing the slider."""
        if self._state_key not in st.session_state:
            return
        played, at = st.session_state[self._state_key]
        if played == self.last or st.session_state.get(self.key, 0) != played:
            del st.session_state[self._state_key]
            st.rerun()  # of the whole page, which ends the interval
        if time.monotonic() - at >= 0.9 * SECONDS:
            self._set(played + 1)

    def _begin(self) -> None:
        self._set(0)

    def _set(self, step: int) -> None:
        st.session_state[self.key] = step
        st.session_state[self._state_key] = (step, time.monotonic())
