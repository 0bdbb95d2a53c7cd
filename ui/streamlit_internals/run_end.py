"""A run of a page is over once the server has taken all that it said.

Streamlit's run tells its window's session what it draws, and that it is over; the session's thread takes that in turn.
A part of the page that asks for itself in between finds a run that takes no more requests. So the session begins
another, and forgets the one before with all that it has not taken yet: the foot of the page stays as it was, and grey,
until the reader moves something. (Streamlit knows: see the comment in `AppSession.request_rerun`, and its issue 9921.)
"""

from __future__ import annotations

import threading
from typing import Any

from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner import ScriptRunner, ScriptRunnerEvent

_ENDS = (
    ScriptRunnerEvent.SCRIPT_STOPPED_WITH_SUCCESS,
    ScriptRunnerEvent.SCRIPT_STOPPED_WITH_COMPILE_ERROR,
    ScriptRunnerEvent.FRAGMENT_STOPPED_WITH_SUCCESS,
)
_PATIENCE = 5.0  # seconds; a server that stops takes nothing any more

_tell = AppSession._on_scriptrunner_event


def hear_out() -> None:
    """Have every run of this server wait, before it takes no more requests, until its end is heard."""
    AppSession._on_scriptrunner_event = _tell_and_wait  # type: ignore[assignment, method-assign]


def _tell_and_wait(session: AppSession, sender: ScriptRunner | None, event: ScriptRunnerEvent, **told: Any) -> None:
    _tell(session, sender, event, **told)
    if event in _ENDS and sender is not None and sender._is_in_script_thread():
        heard = threading.Event()
        session._call_soon_on_event_loop(heard.set)
        heard.wait(_PATIENCE)
