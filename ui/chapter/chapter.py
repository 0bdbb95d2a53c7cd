"""The frame every chapter has: question, picture, what to look for, claims, exercise, code, downloads."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from streamlit import runtime
from streamlit.delta_generator import DeltaGenerator

from ui.chapter.proving import ProvingFrame
from ui.compute.slots import run_in_slot
from ui.streamlit_internals.batched_messages import send_now
from ui.text.markdown import unescape
from ui.text.numbers import separators
from ui.text.words import current_language
from ui.widgets import downloads, predictions
from ui.widgets.attention_view import Along, MapGroup, ViewState, attention_view
from ui.widgets.chart import Point, draw_chart
from ui.widgets.draw_on_figure import OnFigure, drawing_toggle, hides_answer, is_drawn_on
from ui.widgets.heatmap import draw_heatmap
from ui.widgets.predictions import Prediction, Truth, read_prediction
from ui.widgets.sketch import Board
from viz_core.figures.heatmap import Heatmap, encode_heatmap
from viz_core.trace import HeadsOff
from viz_core.view.notebook_file import Recipe
from viz_core.view.state import Cell

Thing = TypeVar("Thing")
_MOMENT = 0.1  # seconds


class Chapter(ProvingFrame):
    """One chapter, from its question to its downloads. Each method draws one part of the page, in reading order."""

    def card(self, name: str) -> DeltaGenerator:
        """A bordered sheet for a picture and its controls."""
        return st.container(border=True, key=f"card-{name}")

    def tabs(self, **asked: Callable[[], None] | None) -> None:
        """Tabs named by `option.NAME`; none where it is None. Only the open one is called: hidden tabs cost nothing."""
        sections = {name: draw for name, draw in asked.items() if draw is not None}
        for tab, draw in zip(self.controls.tabs(tuple(sections)), sections.values(), strict=True):
            if tab.open:
                with tab:
                    draw()

    def figure(
        self,
        name: str,
        figure: go.Figure | Callable[[], go.Figure],
        *,
        height: int = 360,
        bar: bool = True,
        on_click: Callable[[Point], None] | None = None,
        hide_answer: bool = False,
        **values: object,
    ) -> None:
        """A figure with its text alternative (`alt.NAME`) and what to look for (`look.NAME`).

        What makes a figure is called once its place comes near the window; the words are there at once.

        Args:
            height: in pixels, reserved until it is drawn.
            bar: whether buttons to enlarge it and to take it along show over it.
            on_click: is told the point that was clicked, before the page runs again; only of a figure that is there.
            hide_answer: whether its answer is not drawn yet, and so not told either.
        """
        key, alt = self._unique(f"figure-{name}"), unescape(self.words(f"alt.{name}", **values))
        if hide_answer:
            alt = self.common("sketch.kept-back")

        def draw() -> None:
            draw_chart(key, _made(figure), alt, f"{self.words.stem}-{name}", bar=bar, on_click=on_click)

        if callable(figure):
            self.lazy(key, draw, height)
        else:
            draw()
        if not hide_answer:
            self.guidance(name, **values)

    def heatmap(
        self, name: str, heatmap: Heatmap | Callable[[], Heatmap], *, height: int = 360, **values: object
    ) -> None:
        """A map of any size, with its text alternative (`alt.NAME`) and what is said of a cell (`cell.NAME`).

        What makes a map is called once its place, of `height` pixels, comes near the window.
        """
        words = {
            "alt": unescape(self.words(f"alt.{name}", **values)),
            "cell": self.words(f"cell.{name}"),
            **self.common.group("heatmap"),
        }

        def draw() -> None:
            draw_heatmap(f"heatmap-{name}", encode_heatmap(_made(heatmap), words, current_language()))

        if callable(heatmap):
            self.lazy(f"heatmap-{name}", draw, height)
        else:
            draw()
        self.guidance(name, **values)

    def attention_view(
        self,
        groups: Sequence[MapGroup],
        default: ViewState | None = None,
        *,
        second: Sequence[MapGroup] = (),
        inputs: tuple[str, str] = ("", ""),
        beside: tuple[str, ...] = (),
        recipe: Callable[[], Recipe] | None = None,
        off: HeadsOff | None = None,
        on_switch: Callable[[str, int], None] | None = None,
        on_cell: Callable[[Cell], None] | None = None,
        show_contributions: bool = False,
        along: Along | None = None,
        **params: str,
    ) -> ViewState:
        """Every head's map, what to look for in them (`look.maps`), and what the reader has open.

        Args:
            groups: the kinds of maps, each a tab.
            default: what is open where the address names nothing; the first head unless given.
            second: the same kinds of maps of another input, to compare with.
            inputs: what the two inputs are, for people; needed with `second`.
            beside: kinds of maps that are shown beside each other and never subtracted.
            recipe: how the maps were made, for a notebook that makes them again: weights, so none where carried.
            off: the heads that are off, if they can be switched.
            on_switch: is told site and number of a head that the reader switches, before the page runs again.
            on_cell: is told a pair that the reader clicks, before the page runs again.
            show_contributions: whether the maps' numbers are shares of what a head adds, in place of weights.
            along: the slider that `groups` go along with.
            params: other names of the view's query parameters: `head_param`, `pin_param`, `look_param`.
        """
        view = attention_view(
            groups,
            default,
            second=second,
            inputs=inputs,
            beside=beside,
            recipe=None if show_contributions else recipe,
            off=off,
            on_switch=on_switch,
            on_cell=on_cell,
            show_contributions=show_contributions,
            along=along,
            **params,
        )
        if show_contributions:
            st.caption((self.words if self.words.has("about-carried") else self.common)("about-carried"))
        self.guidance("maps")
        return view

    def contributions_choice(self) -> bool:
        """Whether the maps shall show what keys bring, their share of what a head adds, in place of their weights."""
        return self.controls.choice("quantity", ("weights", "carried"), "weights") == "carried"

    def flush(self) -> None:
        """Let the browser paint what it was sent before the charts further down keep it busy.

        Whoever holds a key or drags sees the picture move at each step, and the rest follow when they rest.
        """
        if runtime.exists():
            send_now()
            time.sleep(_MOMENT)

    def guidance(self, name: str, **values: object) -> None:
        if self.words.has(f"look.{name}"):
            st.caption(f"**{self.common('look-for')}** {self.words(f'look.{name}', **values)}")

    def exercise(self, name: str, collapsed: bool = False, reveal: Callable[[], None] | None = None) -> None:
        """Predict, then reveal, by choosing: `exercise.NAME` has a question, answers with a reply to each, and why.

        An answer is a line `- [ ]`, the right one `- [x]`; the reply to a wrong one stands under it, indented, after
        `>`; why is said to everybody and stands at the end, after `>`.

        Args:
            collapsed: one line that opens; above a picture that must not be pushed down.
            reveal: draws, under the reply, the experiment that tells; called once the reader has chosen.
        """
        with self._prediction(name, collapsed) as prediction:
            if predictions.choose(self.common, prediction, self.controls.key(f"guess-{name}")) and reveal is not None:
                reveal()

    def sketch(self, name: str, board: Board, truth: Callable[[], Truth]) -> None:
        """Predict, then reveal, by drawing on a board: a curve, a row of weights, a star.

        In `exercise.NAME`, `- [x]` is the reply to who came near, `- [MISTAKE]` to who came nearer to a known mistake,
        and `- [ ]` to all others.

        Args:
            truth: what comes out, and the mistakes; called once the reader has drawn.
        """

        def ask() -> None:
            with self._prediction(name) as prediction:
                predictions.draw(self.common, prediction, self.controls.key(f"guess-{name}"), board, truth)

        self.fragment(ask)

    def draw_on_figure(self, name: str, on: OnFigure, truth: Callable[[], Truth]) -> None:
        """The same as `sketch`, on a figure of the page, which asks `keeps_back` what it may show."""
        key = self.controls.key(f"guess-{name}")
        with self._prediction(name) as prediction:
            if drawing_toggle(self.common, key):
                predictions.draw(self.common, prediction, key, on.board, truth, on)

    def hides_answer(self, name: str, on: OnFigure) -> bool:
        """Whether a figure must not show its answer, for the reader is about to draw it; before its controls."""
        return hides_answer(self.controls, self.controls.key(f"guess-{name}"), on)

    def is_drawn_on(self, name: str) -> bool:
        """Whether a figure shows what a question is about, for the reader draws on it or has drawn."""
        return is_drawn_on(self.controls.key(f"guess-{name}"))

    @contextmanager
    def _prediction(self, name: str, collapsed: bool = False) -> Iterator[Prediction]:
        """The sheet a prediction stands on, with its question; open where a link brings an answer."""
        prediction = read_prediction(self.words(f"exercise.{name}"))
        question, key = f"**{self.common('exercise')}** {prediction.question}", f"exercise-{name}"
        if collapsed:
            answered = self.controls.key(f"guess-{name}") in st.query_params
            with st.expander(question, expanded=answered, key=key):
                yield prediction
            return
        with st.container(border=True, key=key):
            st.markdown(question)
            yield prediction

    def code(self, *functions: Callable[..., Any]) -> None:
        """The source of the library functions that drew the figures; sent once a reader opens it, for it is long."""

        def show() -> None:
            for function in functions:
                st.caption(f"`{function.__module__}`")
                st.code(inspect.getsource(function), language="python", wrap_lines=True)  # no scrolling without a mouse

        self.expander("code", self.common("code"), ":material/code:", show)

    def downloads(
        self,
        figure: go.Figure | Callable[[], go.Figure] | None = None,
        *,
        rows: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        corner: str = "corner",
        tables: Mapping[str, Callable[[], pd.DataFrame]] = MappingProxyType({}),
        **arrays: np.ndarray | Callable[[], np.ndarray],
    ) -> None:
        """The data, or what makes it, as NPZ, its first array as CSV, and the figure as a page that opens by itself.

        `download.CORNER` says what is down, across and in the table; `rows` and `columns` are names, or places from 0.

        Args:
            tables: what makes other tables, each a CSV of its own whose button says `download-table.NAME`.
        """
        first = next(iter(arrays.values()))
        said = unescape(self.words(f"download.{corner}"))
        with st.container(horizontal=True, key="downloads"):
            self._download("csv", lambda: downloads.table(_made(first), said, rows, columns), "text/csv")
            made = {name: partial(_made, array) for name, array in arrays.items()}
            self._download(
                "npz",
                lambda: downloads.archive({name: make() for name, make in made.items()}),
                "application/octet-stream",
            )
            for name, make_table in tables.items():
                self.download_table(name, make_table)
            if figure is not None:
                self._download(
                    "html",
                    lambda: downloads.page(_made(figure), self.words.title, separators(self.words.language)),
                    "text/html",
                )

    def download_table(self, name: str, make: Callable[[], pd.DataFrame]) -> None:
        """A button, `download-table.NAME`, for a table as CSV."""
        self._download("csv", partial(_csv, make), "text/csv", name)

    def _download(self, suffix: str, make: Callable[[], bytes], mime: str, part: str = "") -> None:
        section = f"download-table.{part}"
        st.download_button(
            self.words(section) if part else self.common(f"download.{suffix}"),
            partial(run_in_slot, make, "download"),  # made only when someone asks, and in its turn
            file_name=f"{self.words.stem_of_part(section, part) if part else self.words.stem}.{suffix}",
            mime=mime,
            key=f"download-{part}.{suffix}" if part else f"download-{suffix}",
            icon=":material/download:",
            type="tertiary",
            on_click="ignore",
        )


def _csv(make: Callable[[], pd.DataFrame]) -> bytes:
    return downloads.csv(make())


def _made(thing: Thing | Callable[[], Thing]) -> Thing:
    return thing() if callable(thing) else thing
