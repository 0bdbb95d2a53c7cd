"""Requests of one browser, brought up to date before Streamlit reads them.

With each request a browser sends the state of every widget, the page and the fragment it shows. By then the server may
have moved on: a callback has set a widget, a link was followed, a run has just ended. This is decided here, where
messages come in, from what this browser sent before, what was sent to it, and what its session holds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING
from weakref import WeakSet

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime import exists, get_instance
from streamlit.runtime.state.session_state import SessionState, WStates

if TYPE_CHECKING:
    from streamlit.runtime.app_session import AppSession

TRIGGERS = ("trigger_value", "string_trigger_value", "json_trigger_value", "chat_input_value")
_ACTS = (
    "trigger_value bool_value double_value int_value string_value string_trigger_value chat_input_value "
    "double_array_value int_array_value string_array_value"
).split()  # values of what only a person changes
_NOT_COMPARED = ("file_uploader_state_value", "arrow_value")  # reading them needs the session's files
_MAX_STATES = 2000  # that are remembered: twice what one request may hold on a public server
_LARGEST_SIGNAL = 2**16  # bytes; the messages that begin and end a run are smaller

_connected: WeakSet[MessageFilter] = WeakSet()
_connecting = threading.Lock()  # a set that grows while another thread goes through it raises an error


def _all_connected() -> list[MessageFilter]:
    with _connecting:
        return list(_connected)


def find_session(session_id: str) -> AppSession | None:
    """The session with this id while a browser is connected to it."""
    return get_instance().get_app_session(session_id) if session_id and exists() else None


def open_sessions() -> Iterator[AppSession]:
    """The sessions of all connected browsers."""
    for session_id in {each.session_id for each in _all_connected()}:
        if (session := find_session(session_id)) is not None:
            yield session


def has_acted(session_id: str) -> bool:
    """Whether the visitor of a session has typed, chosen or clicked anything since the browser connected."""
    return any(each.acted for each in _all_connected() if each.session_id == session_id)


class MessageFilter:
    """What one browser and its session know of each other.

    Attributes:
        acted: whether the visitor has used a control; components that report what is visible do not count.
        session_id: of its session; empty until the first run begins.

    Args:
        find_session: the session with an id.
    """

    def __init__(self, find_session: Callable[[str], AppSession | None] = find_session) -> None:
        self.session_id = ""
        self.acted = False
        self._find_session = find_session
        self._requested_page = self._shown_page = ""  # hashes; empty for an address alone
        self._states: dict[str, bytes] = {}  # of widgets, as last passed on
        self._unapplied: set[str] = set()  # widgets whose new state a run in progress may not have read yet
        self._run_requested = False
        self._run_id = ""  # of the run whose end has not been sent
        with _connecting:
            _connected.add(self)

    @property
    def run_requested(self) -> bool:
        """Whether a run is requested that has not begun."""
        return self._run_requested

    @property
    def busy(self) -> bool:
        """Whether a run is requested or in progress: a fragment's request has to wait for its end.

        A fragment that is requested after a run has ended, and before its end was sent, makes Streamlit drop what was
        not sent yet (see `AppSession.request_rerun` and Streamlit's issue 9921).
        """
        return self._run_requested or self._run_id != ""

    def accepts(self, request: ClientState) -> bool:
        """Whether a request makes sense, in the order in which the browser sent them.

        A fragment may be requested after the link to another page: it would be drawn over the new page.
        """
        if request.fragment_id:
            return self._requested_page in ("", request.page_script_hash)
        self._requested_page = request.page_script_hash
        return True

    def pass_on(self, message: BackMsg) -> bool:
        """Bring a request that the server gets now up to date, in place; False where it is to be dropped instead."""
        request = message.rerun_script
        session = self._find_session(self.session_id)
        if session is not None:
            if request.fragment_id and not session.has_fragment(request.fragment_id):
                return False  # Streamlit would ignore it, and no run would end
            self._update(request, session.session_state)
        self._run_requested = True
        return True

    def stop(self) -> None:
        """Take note that the run in progress is stopped; one that has not begun never will."""
        self._run_requested = False

    def sent(self, data: bytes) -> None:
        """Take note of a message to the browser: which run begins, which has ended."""
        if len(data) > _LARGEST_SIGNAL:
            return
        message = ForwardMsg.FromString(data)
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self.session_id = message.new_session.initialize.session_id
            self._shown_page = message.new_session.page_script_hash
            self._run_id, self._run_requested = message.metadata.run.script_run_id, False
        elif kind == "script_finished":
            if message.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                self._run_requested = True
            if message.metadata.run.script_run_id in ("", self._run_id):
                self._run_id = ""
            if not self.busy:
                self._unapplied.clear()

    def _update(self, request: ClientState, state: SessionState) -> None:
        """Leave out widget states that are older than the page, and run all of it if one outside the fragment is new.

        A state that was in the last request too says nothing where another one is new: what a callback has set since
        would be set back. Where no other one is new it is this widget that was moved, back to where it had been.
        """
        states: dict[str, bytes] = {}
        acted = False
        new, repeated = set[str](), set[str]()
        for widget in request.widget_states.widgets:
            if widget.WhichOneof("value") in TRIGGERS:
                new.add(widget.id)
                acted |= widget.WhichOneof("value") in _ACTS
                continue
            states[widget.id] = widget.SerializeToString()
            differs = _differs(state, widget)
            if self._states.get(widget.id) != states[widget.id]:
                if differs is not False:
                    new.add(widget.id)
                    acted |= bool(differs) and widget.WhichOneof("value") in _ACTS
                acted |= bool(widget.file_uploader_state_value.uploaded_file_info)
            elif differs is False or (differs and widget.id not in self._unapplied):
                repeated.add(widget.id)
        self.acted |= acted and not request.is_auto_rerun
        # The request that answers Back names the sidebar's widgets alone; the page still shows the others.
        same_page = request.page_script_hash == self._shown_page and len(self._states) < _MAX_STATES
        self._states = self._states | states if same_page else states
        self._unapplied |= new & states.keys()
        # A page that is new to the session forgets every widget that its first request does not name.
        if new and repeated and request.page_script_hash == self._shown_page:
            left = [widget for widget in request.widget_states.widgets if widget.id not in repeated]
            del request.widget_states.widgets[:]
            request.widget_states.widgets.extend(left)
        # Of what is said within a few milliseconds a browser makes one request, for the fragment of one of the widgets.
        if request.fragment_id and any(_fragment_of(state, each) != request.fragment_id for each in new):
            request.fragment_id = ""


def _fragment_of(state: SessionState, widget_id: str) -> str | None:
    metadata = state.get_widget_metadata(widget_id)
    return None if metadata is None else metadata.fragment_id


def _differs(state: SessionState, widget: WidgetState) -> bool | None:
    """Whether a session holds another value for this widget; None where it holds none, or none that can be compared."""
    metadata = state.get_widget_metadata(widget.id)
    if metadata is None or widget.WhichOneof("value") in _NOT_COMPARED:
        return None
    sent = WStates()
    sent.set_widget_metadata(metadata)
    sent.set_widget_from_proto(widget)
    try:
        return bool(sent[widget.id] != state.get_widget_value(widget.id))
    except Exception:  # a forged value: its run says what is wrong with it
        return None
