"""The figures of a page: charts, heatmaps and the attention view, each with text alternative and guidance."""

from collections.abc import Callable, Sequence
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from ui.chapter.parts import Content, Deferred, resolve
from ui.text.markdown import after_label, escape, unescape
from ui.text.numbers import localised, powers_in_words
from ui.text.words import Words
from ui.widgets.attention_view import MapGroup, ViewState, attention_view
from ui.widgets.chart import Point, draw_chart
from ui.widgets.heatmap import Heatmap, encode_heatmap, mount_heatmap
from ui.widgets.view_link import open_map
from viz_core.maps.contributions import ContributionKind
from viz_core.maps.measures import attention_sink

_SINKS_OF = range(4, 1025)  # queries and keys of a map that is searched for a sink


class Figures(Content):
    """The figures of one page."""

    def figure(
        self,
        name: str,
        figure: Deferred[go.Figure],
        *,
        height: int = 360,
        bar: bool = True,
        on_click: Callable[[Point], None] | None = None,
        hide_answer: bool = False,
        words: Words | None = None,
        alt: str = "",
        **values: object,
    ) -> None:
        """Draw a figure with its text alternative (`alt.NAME`) and guidance (`look.NAME` or `caption.NAME`).

        A deferred figure is computed once its place comes near the window; its words are there at once.

        Args:
            height: pixels reserved for a deferred figure.
            bar: whether buttons to enlarge and to save it are shown.
            on_click: receives the clicked point before the page reruns; not with a deferred figure.
            hide_answer: whether the figure does not show its answer yet; then neither do its words.
            words: that describe it; the chapter's unless given.
            alt: the name of its text alternative, where several figures share one.
        """
        words = words or self.words
        key = self.parts.unique_key(f"figure-{name}")
        text = self.common("sketch.kept-back") if hide_answer else self._alt(words, alt or name, values)

        def draw() -> None:
            draw_chart(key, resolve(figure), text, f"{self.words.stem}-{name}", bar=bar, on_click=on_click)

        if callable(figure):
            self.parts.lazy(key, draw, height)
        else:
            draw()
        if not hide_answer:
            self._guide(words, name, values)

    def heatmap(self, name: str, heatmap: Deferred[Heatmap], *, height: int = 360, **values: object) -> None:
        """Draw a heatmap of any size with its text alternative (`alt.NAME`) and the text of a cell (`cell.NAME`).

        A deferred heatmap is computed once its place, of `height` pixels, comes near the window.
        """
        words = {
            "alt": self._alt(self.words, name, values),
            "cell": self.words(f"cell.{name}"),
            **self.common.group("heatmap"),
        }

        key, language = f"heatmap-{name}", self.words.language
        if callable(heatmap):
            made = heatmap
            self.parts.lazy(key, lambda: mount_heatmap(key=key, data=encode_heatmap(made(), words, language)), height)
        else:
            mount_heatmap(key=key, data=encode_heatmap(heatmap, words, language))
        self.guidance(name, **values)

    def _alt(self, words: Words, name: str, values: dict[str, object]) -> str:
        """Return the text alternative of a figure, as a screen reader speaks it."""
        times, power = self.common("power-times"), self.common("power")
        return powers_in_words(unescape(words(f"alt.{name}", **values)), times, power)

    def attention_view(
        self,
        groups: Sequence[MapGroup],
        default: ViewState | None = None,
        *,
        contribution_kind: ContributionKind = "",
        folded: bool = True,
        **options: Any,
    ) -> ViewState:
        """Draw every head's map with guidance on `maps`; return what is open.

        The arguments are those of `ui.widgets.attention_view.attention_view`. Contributions have no notebook, whose
        `run_source` makes weights.
        """
        if contribution_kind:
            options.pop("run_source", None)
        view = attention_view(groups, default, contribution_kind=contribution_kind, folded=folded, **options)
        if contribution_kind:
            about = f"about-{contribution_kind}"
            st.caption((self.words if self.words.has(about) else self.common)(about))
        else:
            self._name_sink(groups, view)
        self.guidance("maps")
        return view

    def _name_sink(self, groups: Sequence[MapGroup], view: ViewState) -> None:
        """Say which key the open head attends to whatever asks: its weight says nothing of what the model needs."""
        group = next(group for group in groups if group.id == view.group)
        sizes = len(group.query_tokens), len(group.key_tokens)
        if group.calls[view.layer].signed or not all(size in _SINKS_OF for size in sizes):
            return
        sink = attention_sink(open_map(groups, view))
        if sink is not None:
            share = localised(f"{sink[1]:.2f}", self.words.language)
            st.caption(self.common("resting-place", share=share, place=escape(group.key_tokens[sink[0]])))

    def contributions_choice(self) -> ContributionKind:
        """What the maps show: weights, contributions as shares of a row, or contributions as lengths on one scale."""
        self.controls.choice("quantity", ("weights", "carried", "lengths"), "weights")
        return self.contribution_kind()

    def contribution_kind(self) -> ContributionKind:
        """What was chosen there, for what is drawn elsewhere on the page."""
        kinds: dict[str, ContributionKind] = {"carried": "carried", "lengths": "lengths"}
        return kinds.get(st.session_state.get(self.controls.key("quantity"), ""), "")

    def guidance(self, name: str, **values: object) -> None:
        """Draw what to look for in a figure (`look.NAME`) or its plain caption (`caption.NAME`), where there is one."""
        self._guide(self.words, name, values)

    def _guide(self, words: Words, name: str, values: dict[str, object]) -> None:
        if words.has(f"look.{name}"):
            st.caption(after_label(self.common("look-for"), words(f"look.{name}", **values)))
        elif words.has(f"caption.{name}"):
            st.caption(words(f"caption.{name}", **values))
