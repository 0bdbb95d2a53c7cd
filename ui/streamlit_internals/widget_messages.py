"""Of what a browser says, what its reader has moved counts: all else it may say because it has not heard yet.

With each message a browser tells of every control. Who clicks twice in a moment sends the second message before the
answer to the first has come: in it, what the first click has set stands as it was before, and Streamlit would set it
back. So a control of which a browser says what it said before is left as it is here, if the same message brings news.

A message without other news counts as it is: then it is this control that was moved, back to where it had been.
"""

from __future__ import annotations

from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime.state.session_state import SessionState

from ui.streamlit_internals.mailbox import TRIGGERS

_SAID = "said"  # beside what pages keep in a session: what its browser said last of each control, as a digest

_take = SessionState.set_widgets_from_proto


def take_what_moved() -> None:
    """Have every window of this server take only what was moved."""
    SessionState.set_widgets_from_proto = _take_what_moved  # type: ignore[assignment, method-assign]


def _take_what_moved(window: SessionState, told: WidgetStates) -> None:
    _take(window, told)
    said: dict[str, int] = window._old_state.setdefault(_SAID, {})
    now = {one.id: hash(one.SerializeToString()) for one in told.widgets if one.WhichOneof("value") not in TRIGGERS}
    unlike = {each for each in list(window._new_widget_state) if window._widget_changed(each)}
    again = {each for each in unlike if each in window._old_state and each in now and said.get(each) == now[each]}
    if unlike > again:
        for each in again:
            del window._new_widget_state[each]
    said.update(now)
