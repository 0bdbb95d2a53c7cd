"""A part that asks for itself in the moment in which a run of its page ends."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.script_data import ScriptData
from streamlit.runtime.scriptrunner import script_runner
from streamlit.runtime.scriptrunner.script_cache import ScriptCache

from ui.streamlit_internals import run_end as heard

_PAGE = """
import streamlit as st
st.fragment(lambda: st.write("a part"))()
st.write("the foot of the page")
"""


def _noting(
    call_soon: Callable[[Callable[[], None]], None], asked: list[object]
) -> Callable[[Callable[[], None]], None]:
    """The same, with a note of whose methods shall be called."""

    def note(callback: Callable[[], None]) -> None:
        asked.append(getattr(callback, "__self__", None))
        call_soon(callback)

    return note


async def _ask_as_it_ends(page: Path) -> list[ForwardMsg]:
    """What a window is sent whose part asks once the page has run, and before anything is taken of what it said."""
    session = AppSession(ScriptData(str(page)), MagicMock(), ScriptCache(), None, {})
    session.request_rerun(ClientState())
    run, asked = session._scriptrunner, list[object]()
    session._call_soon_on_event_loop = _noting(session._call_soon_on_event_loop, asked)  # type: ignore[method-assign]
    assert run is not None
    assert run._script_thread is not None
    while run._script_thread.is_alive() and not any(isinstance(one, threading.Event) for one in asked):
        time.sleep(0.001)  # until the run is over, or waits; nothing is taken meanwhile: this is the thread that would
    (part,) = session._fragment_storage._fragments  # type: ignore[attr-defined]
    session.request_rerun(ClientState(fragment_id=part))
    while session._scriptrunner is not None:
        await asyncio.sleep(0)
    return session.flush_browser_queue()


def test_all_that_the_page_said_goes_out_and_then_the_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.py"
    page.write_text(_PAGE)
    server = SimpleNamespace(media_file_mgr=MagicMock(), dataframe_source_mgr=MagicMock())
    monkeypatch.setattr(script_runner.runtime, "get_instance", lambda: server)
    monkeypatch.setattr(AppSession, "_on_scriptrunner_event", AppSession._on_scriptrunner_event)  # and back again
    heard.hear_out()
    sent = asyncio.run(_ask_as_it_ends(page))
    assert [one.script_finished for one in sent if one.HasField("script_finished")] == [
        ForwardMsg.FINISHED_SUCCESSFULLY,
        ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY,
    ]
    texts = [one.delta.new_element.markdown.body for one in sent if one.delta.HasField("new_element")]
    assert texts == ["the foot of the page", "a part"]  # the part's first words have made room for its second
