"""Messages of one browser on their way to Streamlit: which may pass, in which order, and which replace each other.

A request that comes while an earlier one waits replaces it, as in Streamlit once a script runs: only the last state of
a slider counts, and no click is lost, up to more than a person can make.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.RootContainer_pb2 import RootContainer
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates

from ui.streamlit_internals.message_filter import TRIGGERS, MessageFilter

_OFFERED = ("rerun_script", "stop_script", "app_heartbeat", "file_urls_request")
"""Not clear_cache, which is for all visitors; not what tells of the repository or writes to the app's folder."""

_MAX_WAITING = 32  # messages of one visitor
_MAX_WIDGETS = 1000  # of a page, or files at once: ten times what any page has
_MAX_FILES = 20
_MAX_CLICKS = 100  # of older requests that one keeps
_LONGEST_WAIT = 5.0  # seconds for which a request waits for a run: a fragment's for its end, others for its begin

_Key = tuple[str, str]


@dataclass(frozen=True)
class MessageLimits:
    """What a visitor of a public server may send.

    Attributes:
        downloads: files in preparation at once.
        message_bytes: of one message.
    """

    downloads: int
    message_bytes: int


@dataclass
class _Waiting:
    """A message; `data` as it came, unless it was changed since."""

    message: BackMsg
    data: bytes | None
    since: float

    def bytes(self) -> bytes:
        return self.message.SerializeToString() if self.data is None else self.data


class Mailbox:
    """The messages of one visitor that its session has not got yet. A `serving.http.websocket_gate.MessageQueue`.

    Args:
        limits: of a visitor; everything may pass without.
    """

    def __init__(self, limits: MessageLimits | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits, self._clock = limits, clock
        self._waiting: OrderedDict[_Key, _Waiting] = OrderedDict()
        self._downloading: set[str] = set()
        self._filter = MessageFilter()
        self._numbers = count()
        self.page_requested = False

    @property
    def waits(self) -> bool:
        """Whether messages wait here."""
        return bool(self._waiting)

    def put(self, message: bytes) -> str | None:
        """Take a message in; where it goes no further, the reason.

        Raises:
            ValueError: if it is not a message.
        """
        if self._limits and len(message) > self._limits.message_bytes:
            return "too-large"
        try:
            new = BackMsg.FromString(message)
        except DecodeError:
            raise ValueError("message: expected a BackMsg") from None
        kind = _kind(new)
        if self._limits and kind not in (*_OFFERED, "download"):
            return "not-offered"
        if self._limits and not _fits(new):
            return "too-large"
        if kind == "rerun_script":
            self.page_requested = True
            if self._filter.accepts(new.rerun_script) and not self._put_run(new, message):
                return "too-many-messages"
        elif self._limits and len(self._waiting) >= _MAX_WAITING:
            return "too-many-messages"
        else:
            if kind == "stop_script":
                self._take_runs()
            name = _request_id(new) if self._limits else str(next(self._numbers))
            self._waiting[kind, name] = _Waiting(new, message, self._clock())
        return None

    def take(self) -> bytes | None:
        """The next message that may go on; None while there is none."""
        while (key := next(filter(self._may_go, self._waiting), None)) is not None:
            waiting = self._waiting.pop(key)
            if key[0] == "download" and self._limits:
                self._downloading.add(key[1])
            elif key[0] == "stop_script":
                self._filter.stop()
            elif key[0] == "rerun_script":
                before = waiting.message.SerializeToString()
                if not self._filter.pass_on(waiting.message):
                    continue
                if waiting.message.SerializeToString() != before:
                    waiting.data = None
            return waiting.bytes()
        return None

    def sent(self, message: bytes) -> None:
        """Take note of what goes out: a run that begins or ends, a file that is ready."""
        self._filter.sent(message)
        if self._downloading:
            answer = ForwardMsg.FromString(message)
            if answer.WhichOneof("type") == "backend_operation_response":
                self._downloading.discard(answer.backend_operation_response.request_id)

    @staticmethod
    def notice(sentence: str) -> bytes:
        """Return a message that shows a sentence for a few seconds, beside the page."""
        message = ForwardMsg()
        message.metadata.delta_path.extend([RootContainer.EVENT, 0])  # where st.toast puts its words
        toast = message.delta.new_element.toast
        toast.body, toast.icon = sentence, ":material/block:"
        return message.SerializeToString()

    def _may_go(self, key: _Key) -> bool:
        kind, name = key
        if kind == "download":
            return self._limits is None or len(self._downloading) < self._limits.downloads
        # Streamlit merges the requests that come before a run has begun, on the event loop and without a bound.
        waits_for_run = kind == "rerun_script" and (self._filter.busy if name else self._filter.run_requested)
        return not waits_for_run or self._clock() - self._waiting[key].since >= _LONGEST_WAIT

    def _put_run(self, new: BackMsg, message: bytes) -> bool:
        """Queue a run, of the whole page in place of all that wait, of a fragment in place of the same fragment's.

        False if some of their clicks were dropped: a request keeps so many, and is no larger than a message may be.
        """
        run = new.rerun_script
        fragment = run.fragment_id
        if ("rerun_script", "") in self._waiting or len(self._waiting) >= _MAX_WAITING:
            run.fragment_id = ""
        before = self._take_runs(run.fragment_id or None)
        room = _Room(_MAX_CLICKS, self._limits.message_bytes - len(message) if self._limits else None)
        for old in before:
            _add_clicks(old.message.rerun_script.widget_states, run.widget_states, room)
            # A part may be requested right after Back: the widgets still follow the URL.
            run.is_history_navigation |= bool(fragment) and old.message.rerun_script.is_history_navigation
        since = min((old.since for old in before), default=self._clock())
        changed = bool(before) or run.fragment_id != fragment
        self._waiting["rerun_script", run.fragment_id] = _Waiting(new, None if changed else message, since)
        return not room.exceeded

    def _take_runs(self, fragment: str | None = None) -> list[_Waiting]:
        """Remove and return the requests that wait, of one fragment or all, the last first."""
        keys = [key for key in self._waiting if key[0] == "rerun_script" and fragment in (None, key[1])]
        return [self._waiting.pop(key) for key in reversed(keys)]


def _kind(message: BackMsg) -> str:
    kind = message.WhichOneof("type") or ""
    if kind == "backend_operation_request":
        payload = message.backend_operation_request.WhichOneof("payload")
        return "download" if payload in ("deferred_file", "dataframe_chunk") else kind
    return kind


def _request_id(message: BackMsg) -> str:
    """The id that tells requests of a kind apart; empty for a heartbeat, of which one is enough."""
    return message.backend_operation_request.request_id or message.file_urls_request.request_id


def _fits(message: BackMsg) -> bool:
    run = message.rerun_script
    return (
        len(run.widget_states.widgets) <= _MAX_WIDGETS
        and run.query_string.count("&") < _MAX_WIDGETS
        and len(message.file_urls_request.file_names) <= _MAX_FILES
    )


@dataclass
class _Room:
    """What one request may still take over from older ones: so many clicks, of so many bytes (None for any)."""

    clicks: int
    nbytes: int | None
    exceeded: bool = False

    def take(self, state: WidgetState) -> bool:
        size = state.ByteSize() if self.nbytes is not None else 0
        if self.clicks == 0 or (self.nbytes is not None and size > self.nbytes):
            self.exceeded = True
            return False
        self.clicks -= 1
        self.nbytes = None if self.nbytes is None else self.nbytes - size
        return True


def _add_clicks(old: WidgetStates, new: WidgetStates, room: _Room) -> None:
    """Add the clicks of an older request, which are not lost because something else changed after them."""
    known = {state.id for state in new.widgets}
    for state in old.widgets:
        if state.WhichOneof("value") in TRIGGERS and state.id not in known and room.take(state):
            new.widgets.append(state)
