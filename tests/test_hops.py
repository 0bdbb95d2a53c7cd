"""How far data walks from a control to its picture, counted in calls of functions of ours.

A page draws a control, computes with what it returns, and draws the result. For each of these stations we take the
longest stack of calls from the page to it, or from the fragment that Streamlit runs again without the page. The length
of the way is the sum, with what all stacks begin with counted once. The stack of what runs in a slot begins with the
one that submitted it.
"""

import threading
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from serving.compute.slots import Job, reset_singletons
from tests.source_files import ROOT
from ui.streamlit_internals.front_end import follow_link
from ui.widgets.heatmap import encode_heatmap
from viz_core.positional import sinusoidal_table
from viz_core.pretrained import Translator
from viz_core.view.payload import encode_view
from viz_core.view.shipped import translation_groups

_FRAGMENT = "Parts._repeatable.<locals>.run"
_OURS = tuple(str(ROOT / folder) for folder in ("pages", "ui", "serving", "viz_core"))
Stacks = dict[str, tuple[str, ...]]


class Way(NamedTuple):
    """A widget of a chapter, the functions that its new value reaches, and today's hops, which may only shrink."""

    chapter: str
    control: Callable[..., Any]
    key: str
    value: Any
    stations: tuple[Callable[..., Any], ...]
    hops: int


TRANSLATE = (Translator.translate_ids, translation_groups, encode_view)
WAYS = {
    "slider": Way("sinusoidal-encoding", st.slider, "se-n", 61, (sinusoidal_table, encode_heatmap), 9),  # 12 allowed
    "sentence": Way("transformer", st.text_input, "t-text", "She is here.", TRANSLATE, 25),
}


@pytest.mark.parametrize("name", WAYS)
def test_the_way_from_a_control_to_its_picture_does_not_grow(name: str) -> None:
    way = WAYS[name]
    app = AppTest.from_file(str(ROOT / "ui" / "app" / "main.py"), default_timeout=300)
    follow_link(app, way.chapter)
    app.run()
    widgets = app.slider if way.control is st.slider else app.text_input
    stacks = walk(way, lambda: widgets(key=way.key).set_value(way.value).run())
    assert set(stacks) == {function.__name__ for function in (way.control, *way.stations)}
    shared = sum(1 for _ in takewhile(lambda calls: len(set(calls)) == 1, zip(*stacks.values(), strict=False)))
    assert shared + sum(len(stack) - shared for stack in stacks.values()) == way.hops, stacks


def walk(way: Way, rerun: Callable[[], AppTest]) -> Stacks:
    """Return the longest stack of ours to the control and to each station, from the page on."""
    stacks: Stacks = {}
    control, stations = _code(way.control), {_code(station) for station in way.stations}
    submitted: dict[Job, tuple[str, ...]] = {}
    reset_singletons()  # the slots' threads must start under the profiler

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event != "call":
            return
        if code is Job.__init__.__code__:  # called by `Slots.submit`
            submitted[frame.f_locals["self"]] = _stack(frame.f_back and frame.f_back.f_back, submitted)
        elif code in stations or (code is control and frame.f_locals.get("key") == way.key):
            stacks[code.co_name] = max(stacks.get(code.co_name, ()), _stack(frame, submitted), key=len)

    threading.setprofile(profile)
    try:
        app = rerun()
    finally:
        threading.setprofile(None)
    assert not app.exception, [error.message for error in app.exception]
    return stacks


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
