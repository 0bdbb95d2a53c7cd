"""What a browser may tell the server: Streamlit's messages, as far as the pages of the Atlas send them.

What a page asks while its last question still waits takes that one's place, as it does in Streamlit once a script
runs: only the last state of a slider is ever seen, and each click on a button is kept.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.RootContainer_pb2 import RootContainer
from streamlit.proto.WidgetStates_pb2 import WidgetStates

from ui.streamlit_internals.stale_fragments import Asked

_OFFERED = ("rerun_script", "stop_script", "app_heartbeat", "file_urls_request")
"""Not clear_cache, which is for all visitors; not what tells of the repository or writes to the app's folder."""

TRIGGERS = ("trigger_value", "string_trigger_value", "json_trigger_value", "chat_input_value")
_MOST_WAITING = 32  # messages of one visitor
_MOST_WIDGETS = 1000  # of a page, or files at once: ten times what any page has
_MOST_FILES = 20

_Key = tuple[str, str]


@dataclass
class _Waiting:
    """A message; `data` as it came, until another is added to it."""

    message: BackMsg
    data: bytes | None = None

    def bytes(self) -> bytes:
        return self.message.SerializeToString() if self.data is None else self.data


class Mailbox:
    """What one visitor has sent, and its session has not got yet. A `serving.http.websocket_gate.MessageQueue`.

    Args:
        downloads: files that may be in the making for it at once.
        most_bytes: of a message.
    """

    def __init__(self, downloads: int, most_bytes: int) -> None:
        self._downloads, self._most_bytes = downloads, most_bytes
        self._waiting: OrderedDict[_Key, _Waiting] = OrderedDict()
        self._making: set[str] = set()
        self._asked = Asked()
        self.page_requested = False

    def put(self, message: bytes) -> str | None:
        """Take a message in; where it goes no further, why.

        Raises:
            ValueError: if it is no message.
        """
        if len(message) > self._most_bytes:
            return "too-large"
        try:
            new = BackMsg.FromString(message)
        except DecodeError:
            raise ValueError("message: expected a BackMsg") from None
        kind = _kind(new)
        if kind is None:
            return "not-offered"
        if not _fits(new):
            return "too-large"
        if kind == "rerun_script":
            self.page_requested = True
            if not self._asked.too_late(new):
                self._put_run(new, message)
        elif len(self._waiting) >= _MOST_WAITING:
            return "too-many-messages"
        else:
            if kind == "stop_script":
                self._take_runs()
            self._waiting[kind, _number(new)] = _Waiting(new, message)
        return None

    def take(self) -> bytes | None:
        """The next message; None while there is none. A file is made only when few are in the making."""
        for key, waiting in self._waiting.items():
            if key[0] != "download" or len(self._making) < self._downloads:
                del self._waiting[key]
                if key[0] == "download":
                    self._making.add(key[1])
                return waiting.bytes()
        return None

    def sent(self, message: bytes) -> None:
        """Notice a file that is made, or could not be."""
        if self._making:
            answer = ForwardMsg.FromString(message)
            if answer.WhichOneof("type") == "backend_operation_response":
                self._making.discard(answer.backend_operation_response.request_id)

    @staticmethod
    def notice(sentence: str) -> bytes:
        """A message that shows a sentence for a few seconds, beside whatever the page shows."""
        message = ForwardMsg()
        message.metadata.delta_path.extend([RootContainer.EVENT, 0])  # where st.toast puts its words
        toast = message.delta.new_element.toast
        toast.body, toast.icon = sentence, ":material/block:"
        return message.SerializeToString()

    def _put_run(self, new: BackMsg, message: bytes) -> None:
        """A run of the whole page takes the place of all that wait, and one of a fragment that of the same fragment."""
        run = new.rerun_script
        fragment = run.fragment_id
        if ("rerun_script", "") in self._waiting or len(self._waiting) >= _MOST_WAITING:
            run.fragment_id = ""
        before = self._take_runs(run.fragment_id or None)
        for old in before:
            _keep_clicks(old.message.rerun_script.widget_states, run.widget_states)
        self._waiting["rerun_script", run.fragment_id] = _Waiting(
            new, message if not before and run.fragment_id == fragment else None
        )

    def _take_runs(self, fragment: str | None = None) -> list[_Waiting]:
        """The runs that wait, of one fragment or all, the last first; they wait no more."""
        keys = [key for key in self._waiting if key[0] == "rerun_script" and fragment in (None, key[1])]
        return [self._waiting.pop(key) for key in reversed(keys)]


def _kind(message: BackMsg) -> str | None:
    kind = message.WhichOneof("type")
    if kind == "backend_operation_request":
        payload = message.backend_operation_request.WhichOneof("payload")
        return "download" if payload in ("deferred_file", "dataframe_chunk") else None
    return kind if kind in _OFFERED else None


def _number(message: BackMsg) -> str:
    """What tells requests of a kind apart; a heartbeat is as good as another."""
    return message.backend_operation_request.request_id or message.file_urls_request.request_id


def _fits(message: BackMsg) -> bool:
    run = message.rerun_script
    return (
        len(run.widget_states.widgets) <= _MOST_WIDGETS
        and run.query_string.count("&") < _MOST_WIDGETS
        and len(message.file_urls_request.file_names) <= _MOST_FILES
    )


def _keep_clicks(old: WidgetStates, new: WidgetStates) -> None:
    """A click that waits is not lost because something else changed after it."""
    known = {state.id for state in new.widgets}
    new.widgets.extend(
        state for state in old.widgets if state.id not in known and state.WhichOneof("value") in TRIGGERS
    )
