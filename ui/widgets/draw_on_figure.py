"""A figure of the page to draw on: a question sets it, and it keeps its answer back until the reader has drawn."""

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
        board: within the figure's own axes; weights lie on bars across, the first on top, or in a row of cells.
        figure: its name on the page.
        settings: of controls, by name: what the question is about.
        axes: plotly's names of the figure's axes.
        cells: whether weights stand side by side in the one row of a grid.
    """

    board: Board
    figure: str
    settings: Mapping[str, object]
    axes: tuple[str, str] = ("xaxis", "yaxis")
    cells: bool = False


def hides_answer(controls: Controls, key: str, on: OnFigure) -> bool:
    """Whether the figure must not show its answer: the reader draws, and has not finished.

    To be asked before the controls are drawn: while the reader draws, and after, they are held as the question sets
    them. Set once, by a callback, they would be lost where a part of the page asks to run in the same moment.
    """
    if not is_drawn_on(key):
        return False
    for name, value in on.settings.items():
        if st.session_state.get(controls.key(name)) != value:
            st.session_state[controls.key(name)] = value
    return on.board.read(st.query_params.get(key)) is None


def is_drawn_on(key: str) -> bool:
    """Whether the reader draws or has drawn; may be asked before the switch is there, where the address tells."""
    switch = _switch(key)
    return bool(st.session_state.get(switch, st.query_params.get(switch) == "true"))


def drawing_toggle(common: Words, key: str) -> bool:
    """Whether the reader draws or has drawn."""
    return st.toggle(
        common("sketch.on-figure"), key=_switch(key), bind="query-params", help=common("sketch.holds-controls")
    )


def _switch(key: str) -> str:
    return f"{key}-drawn"
