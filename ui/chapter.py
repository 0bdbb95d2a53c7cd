"""The frame every chapter has: question, picture, what to look for, claims, exercise, code, downloads."""

from __future__ import annotations

import inspect
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
import plotly.graph_objects as go
import streamlit as st
from streamlit import runtime
from streamlit.delta_generator import DeltaGenerator

from ui import downloads
from ui.attention_view import MapGroup, ViewState, attention_view
from ui.chart import Point, draw_chart
from ui.component import component
from ui.controls import Controls, plain
from ui.frame import Frame
from ui.heatmap import draw_heatmap
from ui.words import current_language
from viz_core.figures.heatmap import Heatmap, encode_heatmap
from viz_core.view.runnable import Recipe

_keep_history = component("history")  # the Back button goes through what was typed
Thing = TypeVar("Thing")
_MOMENT = 0.1  # seconds


class Chapter(Frame):
    """One chapter, from its question to its downloads. Each method draws one part of the page, in reading order."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        with st.container(key="history"):
            _keep_history(key="history-mount")
        self.controls = Controls(self.words)
        self._keys: Counter[str] = Counter()

    def card(self, name: str) -> DeltaGenerator:
        """A bordered sheet for a picture and its controls."""
        return st.container(border=True, key=f"card-{name}")

    def tabs(self, **sections: Callable[[], None]) -> None:
        """Tabs named by `option.NAME`. Only the open one's function is called: hidden tabs cost nothing."""
        tabs = st.tabs(
            [self.words(f"option.{name}") for name in sections],
            key=self.controls.key("section"),
            on_change="rerun",
            bind="query-params",
        )
        for tab, draw in zip(tabs, sections.values(), strict=True):
            if tab.open:
                with tab:
                    draw()

    def figure(
        self,
        name: str,
        figure: go.Figure,
        *,
        bar: bool = True,
        on_click: Callable[[Point], None] | None = None,
        **values: object,
    ) -> None:
        """A figure with its text alternative (`alt.NAME`) and what to look for (`look.NAME`).

        `bar`: whether buttons to enlarge it and to take it along show over it.
        `on_click` is told the point that was clicked, before the page runs again.
        """
        draw_chart(
            self._unique(f"figure-{name}"),
            figure,
            plain(self.words(f"alt.{name}", **values)),
            f"{self.name}-{name}",
            bar=bar,
            on_click=on_click,
        )
        self.look_for(name, **values)

    def heatmap(self, name: str, heatmap: Heatmap, **values: object) -> None:
        """A map of any size, with its text alternative (`alt.NAME`) and what is said of a cell (`cell.NAME`)."""
        words = {
            "alt": plain(self.words(f"alt.{name}", **values)),
            "cell": self.words(f"cell.{name}"),
            **self.common.group("heatmap"),
        }
        draw_heatmap(f"heatmap-{name}", encode_heatmap(heatmap, words, current_language()))
        self.look_for(name, **values)

    def attention_view(
        self,
        groups: Sequence[MapGroup],
        default: ViewState | None = None,
        *,
        second: Sequence[MapGroup] = (),
        inputs: tuple[str, str] = ("", ""),
        recipe: Callable[[], Recipe] | None = None,
        **params: str,
    ) -> ViewState:
        """Every head's map, what to look for in them (`look.maps`), and what the reader has open.

        Args:
            groups: the kinds of maps, each a tab.
            default: what is open where the address names nothing; the first head unless given.
            second: the same kinds of maps of another input, to compare with.
            inputs: what the two inputs are, for people; needed with `second`.
            recipe: how the maps were made, for a notebook that makes them again.
            params: other names of the view's query parameters: `head_param`, `pin_param`, `look_param`.
        """
        view = attention_view(groups, default, second=second, inputs=inputs, recipe=recipe, **params)
        self.look_for("maps")
        return view

    def let_paint(self) -> None:
        """Let the browser paint what it was sent before the charts further down keep it busy.

        Whoever holds a key or drags sees the picture move at each step, and the rest follow when they rest.
        """
        if runtime.exists():
            time.sleep(_MOMENT)

    def look_for(self, name: str, **values: object) -> None:
        if self.words.has(f"look.{name}"):
            st.caption(f"**{self.common('look-for')}** {self.words(f'look.{name}', **values)}")

    def claims(self) -> DeltaGenerator:
        """The heading and the row in which claims stand."""
        st.subheader(self.common("claims"), anchor="claims")
        return st.container(horizontal=True, key="claims")

    def finding(self, name: str, holds: bool, **values: object) -> None:
        """What these very data show: `finding.NAME` where it holds, `finding.NAME-not` where it does not.

        A sentence that compares ("wider", "half as fast") stands here, with a function of a lesson to decide it, so
        that it is true at any setting of the controls.
        """
        st.caption(
            f":material/fact_check: {self.words(f'finding.{name}' if holds else f'finding.{name}-not', **values)}"
        )

    def claim(self, name: str, residual: float, tolerance: float, **values: object) -> None:
        """A badge: what must be true (`claim.NAME`), by how much it is missed, and whether that is little enough."""
        self._badge(name, "off-by", residual, tolerance, residual <= tolerance, values)

    def claim_at_most(self, name: str, measured: float, most: float, **values: object) -> None:
        """A badge for a number that is no error, a ratio say: it holds where it is at most this large."""
        self._badge(name, "at-most", measured, most, measured <= most, values)

    def claim_at_least(self, name: str, measured: float, least: float, **values: object) -> None:
        """A badge for what must differ: it holds where the number measured is at least this large."""
        self._badge(name, "at-least", measured, least, measured >= least, values)

    def _badge(
        self, name: str, kind: str, measured: float, limit: float, holds: bool, values: dict[str, object]
    ) -> None:
        mark = ":green[:material/check:]" if holds else ":orange[:material/close:]"
        verdict = self.common("holds" if holds else "fails")
        numbers = {"measured": f"{measured:.2g}", "limit": f"{limit:.2g}"}
        words = f"{self.words(f'claim.{name}', **values)} {self.common(f'badge.{kind}', **numbers)}"
        with st.container(key=self._unique(f"claim-{name}"), width="content"):
            st.markdown(f"{mark} {words}", help=f"{verdict} {self.common(f'measured.{kind}', **numbers)}")

    def _unique(self, key: str) -> str:
        """The key, with a number where this page has used it before: several badges or figures may share words."""
        self._keys[key] += 1
        return key if self._keys[key] == 1 else f"{key}-{self._keys[key]}"

    def exercise(self, name: str) -> None:
        """Predict, then reveal: `exercise.NAME` has a question, choices `- [ ]`, the right one `- [x]`, and `>` why."""
        st.subheader(self.common("exercise"), anchor=f"exercise-{name}")
        question, choices, right, why = _parse_exercise(self.words(f"exercise.{name}"))
        key = self.controls.key(f"guess-{name}")
        with st.container(border=True, key=f"exercise-{name}"):
            st.markdown(question)
            guess = st.radio(question, choices, None, key=key, bind="query-params", label_visibility="collapsed")
            if guess is not None:
                st.markdown(f"{self.common('right' if guess == right else 'wrong')} {why}")

    def code(self, *functions: Callable[..., Any]) -> None:
        """The source of the library functions that drew the figures; sent once a reader opens it, for it is long."""

        def show() -> None:
            key = self.controls.key("code")
            label = self.common("code")
            with st.expander(label, icon=":material/code:", key=key, on_change="rerun", bind="query-params") as sheet:
                if sheet.open:
                    for function in functions:
                        st.caption(f"`{function.__module__}`")
                        st.code(inspect.getsource(function), language="python")

        self.alone(show)

    def alone(self, draw: Callable[[], None], every: float | None = None) -> None:
        """A part of the page that runs alone when only its own controls move, and every so many seconds if asked."""
        used = self._keys.copy()

        def run() -> None:
            self._keys = used.copy()  # run again, its figures keep their keys
            draw()

        st.fragment(run, run_every=every)()

    def downloads(
        self,
        figure: go.Figure | Callable[[], go.Figure] | None = None,
        *,
        rows: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        corner: str = "corner",
        **arrays: np.ndarray | Callable[[], np.ndarray],
    ) -> None:
        """The data, or what makes it, as NPZ, its first array as CSV, and the figure as a page that opens by itself.

        `download.CORNER` says what is down, across and in the table; `rows` and `columns` are names, or places from 0.
        """
        first = next(iter(arrays.values()))
        said = plain(self.words(f"download.{corner}"))
        with st.container(horizontal=True, key="downloads"):
            self._download("csv", lambda: downloads.table(_made(first), said, rows, columns), "text/csv")
            made = {name: partial(_made, array) for name, array in arrays.items()}
            self._download(
                "npz",
                lambda: downloads.archive({name: make() for name, make in made.items()}),
                "application/octet-stream",
            )
            if figure is not None:
                self._download("html", lambda: downloads.page(_made(figure), self.words.title), "text/html")

    def _download(self, suffix: str, make: Callable[[], bytes], mime: str) -> None:
        st.download_button(
            self.common(f"download.{suffix}"),
            make,  # made only when someone asks
            file_name=f"{self.name}.{suffix}",
            mime=mime,
            key=f"download-{suffix}",
            icon=":material/download:",
            type="tertiary",
            on_click="ignore",
        )


def _parse_exercise(text: str) -> tuple[str, list[str], str, str]:
    choices = re.findall(r"^- \[([ x])\] (.+)$", text, flags=re.MULTILINE)
    right = [choice for mark, choice in choices if mark == "x"]
    if len(right) != 1:
        raise ValueError(f"an exercise needs exactly one right choice, got {len(right)}")
    why = "\n".join(re.findall(r"^> ?(.*)$", text, flags=re.MULTILINE))
    return text.split("\n- [")[0].strip(), [choice for _, choice in choices], right[0], why


def _made(thing: Thing | Callable[[], Thing]) -> Thing:
    return thing() if callable(thing) else thing
