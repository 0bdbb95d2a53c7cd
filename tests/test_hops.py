"""How far data walks from a control to its picture: `python -m tests.test_hops` prints the chains of calls.

A hop is a call of a function of ours. A page draws a control, computes with what it returns, and draws the result.
For each of these stations we take the longest stack of calls from the page to it, or from the fragment that Streamlit
runs again without the page. The length of the way is the sum, with what all stacks begin with counted once. The stack
of what runs in a slot begins with the one that submitted it.
"""

import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from serving.compute.slots import Job, reset_singletons
from ui.streamlit_internals.front_end import follow_link
from ui.widgets.heatmap import encode_heatmap
from viz_core.positional import sinusoidal_table
from viz_core.pretrained import Translator
from viz_core.view.payload import encode_view
from viz_core.view.shipped import translation_groups

ROOT = Path(__file__).resolve().parents[1]
_FRAGMENT = "Parts._repeatable.<locals>.run"
_OURS = tuple(str(ROOT / folder) for folder in ("pages", "ui", "serving", "viz_core"))


@dataclass(frozen=True)
class Way:
    """A control of a chapter and what its value must reach.

    Attributes:
        control: Streamlit's function that draws the widget.
        key: of the widget.
        value: that a reader gives it.
        stations: functions that the value reaches on its way, the picture's payload last.
        budget: the most hops that the design allows.
    """

    chapter: str
    control: Callable[..., Any]
    key: str
    value: Any
    stations: tuple[Callable[..., Any], ...]
    budget: int


WAYS = {
    "slider": Way("sinusoidal-encoding", st.slider, "se-n", 61, (sinusoidal_table, encode_heatmap), 12),
    "sentence": Way(
        "transformer",
        st.text_input,
        "t-text",
        "She is here.",
        (Translator.translate_ids, translation_groups, encode_view),
        25,
    ),
}


@dataclass
class Walked:
    """What a rerun of a page called.

    Attributes:
        stacks: the longest one of ours to the control and to each station, from the page on.
        calls: of every function of ours, by its place.
    """

    stacks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)

    @property
    def hops(self) -> int:
        """The length of the way, with what all stacks begin with once."""
        shared = sum(1 for _ in takewhile(lambda calls: len(set(calls)) == 1, zip(*self.stacks.values(), strict=False)))
        return shared + sum(len(stack) - shared for stack in self.stacks.values())

    def add(self, station: CodeType, stack: tuple[str, ...]) -> None:
        """Note a stack that ends in a station if it is the longest one so far."""
        longest = self.stacks.setdefault(station.co_name, stack)
        self.stacks[station.co_name] = max(longest, stack, key=len)


def walk(way: Way) -> Walked:
    """Return what the page calls when its control changes."""
    app = AppTest.from_file(str(ROOT / "ui" / "app" / "main.py"), default_timeout=300)
    follow_link(app, way.chapter)
    app.run()
    widgets = app.slider if way.control is st.slider else app.text_input
    return _profiled(way, lambda: widgets(key=way.key).set_value(way.value).run())


def _profiled(way: Way, rerun: Callable[[], AppTest]) -> Walked:
    walked, control = Walked(), _code(way.control)
    stations = {_code(station) for station in way.stations}
    submitted: dict[Job, tuple[str, ...]] = {}
    reset_singletons()  # the slots' threads must start under the profiler

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event != "call":
            return
        if code is control:
            if frame.f_locals.get("key") == way.key:
                walked.add(code, _stack(frame, submitted))
        elif code.co_filename.startswith(_OURS):
            if not code.co_name.startswith("<") or code.co_name == "<lambda>":
                walked.calls[_place(code)] += 1
            if code is Job.__init__.__code__:  # called by `Slots.submit`
                submitted[frame.f_locals["self"]] = _stack(frame.f_back and frame.f_back.f_back, submitted)
            elif code in stations:
                walked.add(code, _stack(frame, submitted))

    threading.setprofile(profile)
    try:
        app = rerun()
    finally:
        threading.setprofile(None)
    assert not app.exception, [error.message for error in app.exception]
    return walked


def _stack(frame: FrameType | None, submitted: dict[Job, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the functions of ours from the page to a frame, outermost first."""
    found: list[str] = []
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(_OURS):
            if code is Job.run.__code__:
                return (*submitted[frame.f_locals["self"]], *reversed([*found, _place(code)]))
            found.append(_place(code))
            if code.co_name == "<module>" or code.co_qualname == _FRAGMENT:  # the page, or what runs again of it
                break
        frame = frame.f_back
    return tuple(reversed(found))


def _code(function: Callable[..., Any]) -> CodeType:
    while (wrapped := getattr(function, "__wrapped__", None)) is not None:
        function = wrapped
    return getattr(function, "__func__", function).__code__


def _place(code: CodeType) -> str:
    return f"{Path(code.co_filename).relative_to(ROOT)}:{code.co_qualname}"


HOPS = {"slider": 9, "sentence": 25}
"""Today's length of each way. It may only shrink; the budget of the design is in `WAYS`."""


@pytest.mark.parametrize("name", WAYS)
def test_the_way_from_a_control_to_its_picture_does_not_grow(name: str) -> None:
    way = WAYS[name]
    walked = walk(way)
    assert set(walked.stacks) == {function.__name__ for function in (way.control, *way.stations)}
    assert walked.hops == HOPS[name] <= way.budget, walked.stacks
    assert walked.calls.total() > walked.hops


if __name__ == "__main__":
    for name, way in WAYS.items():
        found = walk(way)
        print(f"{name}: {found.hops} hops (budget {way.budget}), {found.calls.total():,} calls of ours")
        for station, stack in found.stacks.items():
            print(f"  to {station}", *stack, sep="\n    ")
        if "-v" in sys.argv:
            print(*(f"{count:6} {place}" for place, count in found.calls.most_common(40)), sep="\n")
