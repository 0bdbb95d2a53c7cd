"""A figure of the page to draw on: an exercise sets its controls and hides its answer until the reader has drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from ui.text.words import Words
from ui.widgets.controls import Controls
from ui.widgets.sketch import Board


@dataclass(frozen=True)
class OnFigure:
    """What is drawn on which figure.

    Attributes:
        board: in the figure's axes; weights are horizontal bars, the first on top, or a row of cells.
        figure: its name on the page.
        settings: values of controls, by name, that the exercise is about.
        axes: plotly's names of the figure's axes.
        cells: whether weights are the cells of one row instead of bars.
    """

    board: Board
    figure: str
    settings: Mapping[str, object]
    axes: tuple[str, str] = ("xaxis", "yaxis")
    cells: bool = False


def figure_hides_answer(controls: Controls, key: str, on: OnFigure) -> bool:
    """Whether the figure must not show its answer: the reader is drawing and has not finished.

    Call it before the controls are drawn: it sets them to the exercise's settings at each run while the reader draws
    and after. Set once by a callback, they would be lost if a fragment reruns at the same moment.
    """
    if not figure_is_drawn_on(key):
        return False
    for name, value in on.settings.items():
        if st.session_state.get(controls.key(name)) != value:
            st.session_state[controls.key(name)] = value
    return on.board.read(st.query_params.get(key)) is None


def figure_is_drawn_on(key: str) -> bool:
    """Whether the reader draws or has drawn; before the toggle exists, the URL decides."""
    toggle = _toggle_key(key)
    return bool(st.session_state.get(toggle, st.query_params.get(toggle) == "true"))


def drawing_toggle(common: Words, key: str) -> bool:
    """Draw the toggle; return whether the reader draws or has drawn."""
    return st.toggle(
        common("sketch.on-figure"), key=_toggle_key(key), bind="query-params", help=common("sketch.holds-controls")
    )


def _toggle_key(key: str) -> str:
    return f"{key}-drawn"
