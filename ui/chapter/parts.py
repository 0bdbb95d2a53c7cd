"""Parts of a page: drawn when visible, run by themselves as fragments, or drawn once opened; each with unique keys.

A marker in each lazy part requests it; another, in the page, reports now and then which parts are visible. So when the
page runs again, for another sentence say, what is being read is drawn at once and the other parts wait again. A part
whose file is missing or damaged shows a message, and the rest of the page remains.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from serving.compute.turns import page_turns
from serving.logs import log, where
from ui.chapter.frame import Frame
from ui.streamlit_internals.script_run import in_browser, network
from ui.text.translations import explain
from ui.text.words import Words
from ui.widgets.component import component
from ui.widgets.controls import Controls
from viz_core.runtime.assets import AssetError


@contextmanager
def report_damaged_assets() -> Iterator[None]:
    """Draw a message, and log it, if a file that the block needs is missing or damaged."""
    try:
        yield
    except AssetError as error:
        log.error("a file that ships is damaged", error=where(error))
        st.error(explain(error), icon=":material/broken_image:")


_mount = component("lazy_parts", in_page=True)

_PAGE_KEY = "lazy-page"
_VISIBLE = "visible-parts"  # which parts were visible last, by page
_MAX = 64  # parts of a page that are visible at once


def _visible() -> dict[str, frozenset[str]]:
    return st.session_state.get(_VISIBLE, {})


def _message(key: str) -> Mapping[str, Any]:
    """The message of a marker; empty where the reader has left its chapter since."""
    return st.session_state.get(key) or {}


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
            page: its name. Someone who returns to it gets at once what was visible when they left.
            controls: give expanders their keys.
            scripts: invisible container for the component that reports which parts are visible.
        """
        self._page, self._controls = page, controls
        self._keys: Counter[str] = Counter()
        if in_browser():

            def report() -> None:
                self.store_visible(_message(_PAGE_KEY).get("visible"))

            with scripts:
                st.fragment(lambda: _mount(key=_PAGE_KEY, data={"name": "page"}, on_visible_change=report))()

    def lazy(
        self, name: str, draw: Callable[[], None], height: int, placeholder: Callable[[], None] = lambda: None
    ) -> None:
        """Draw a part once its place comes near the window; at once where there is no browser, as in a test.

        A link into it, printing, and a browser that cannot tell what is visible request it at once. It holds no
        controls and no clickable figures: a widget that is not drawn is not in the URL.

        Args:
            height: pixels reserved until it is drawn; the next time, as many as it took.
            placeholder: draws what is shown until then.
        """
        draw = self._repeatable(draw)
        if not in_browser():
            draw()
            return
        name = f"{self._page}-{name}"
        key = f"lazy-{name}"

        def request() -> None:
            self.store_visible(_message(key).get("request"))

        def run() -> None:
            place = st.container()
            visible = name in _visible().get(self._page, ())
            with place, report_damaged_assets():
                (draw if visible else placeholder)()
            data = {"name": name, "pending": not visible, "height": height}
            _mount(key=key, data=data, on_request_change=request)

        with st.container(key=f"part-{name}"):
            st.fragment(run)()

    def store_visible(self, names: Any) -> None:
        """Store which parts are visible, of what the browser sent, which may be anything."""
        if isinstance(names, list):
            visible = frozenset(name for name in names[:_MAX] if isinstance(name, str))
            st.session_state[_VISIBLE] = _visible() | {self._page: visible}

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
            with page_turns.turn(network()), report_damaged_assets():
                draw()

        return run


class Content:
    """What one kind of a page's content needs of the page, which sets it."""

    name: str
    frame: Frame
    words: Words
    common: Words
    controls: Controls
    parts: Parts


SECONDS = 1.4  # per step


class Slideshow:
    """Plays a slider through some of its numbers, and stops at the last or when the reader moves the slider.

    Args:
        name: of the slider, whose state is the number.
        steps: the numbers, in order.
    """

    def __init__(self, controls: Controls, name: str, steps: Sequence[int]) -> None:
        self.key = controls.key(name)
        self.steps = steps
        self._label = controls.common("play")
        self._state_key = f"{self.key}-played"  # number set last, the one before it, and the time

    @property
    def every(self) -> float | None:
        """Interval in seconds at which to check for the next step; None while it is not playing."""
        return SECONDS if self._state_key in st.session_state else None

    def button(self) -> None:
        """Draw the button that plays from the first step on."""
        icon = ":material/play_arrow:"
        if st.button(self._label, key=f"{self.key}-play", icon=icon, on_click=self._set, args=[0]):
            st.rerun()  # of the whole page, which begins the interval: the button may be in the fragment that has it

    def step(self) -> None:
        """Advance one step if it is due; call before drawing the slider."""
        if self._state_key not in st.session_state:
            return
        played, before, at = st.session_state[self._state_key]
        now = self.steps[played]
        if self._number() == before:  # sent by a browser that does not show the step yet
            st.session_state[self.key] = now
        if played == len(self.steps) - 1 or self._number() != now:
            del st.session_state[self._state_key]
            st.rerun()  # of the whole page, which ends the interval
        if time.monotonic() - at >= 0.9 * SECONDS:
            self._set(played + 1)

    def _number(self) -> int:
        return int(st.session_state.get(self.key, self.steps[0]))

    def _set(self, place: int) -> None:
        before = self._number()
        st.session_state[self.key] = self.steps[place]
        st.session_state[self._state_key] = (place, before, time.monotonic())
