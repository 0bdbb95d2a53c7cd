"""What Streamlit keeps for its visitors, and how much of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import get_instance
from streamlit.runtime.state.common import is_element_id
from streamlit.runtime.state.session_state import Serialized

from serving.compute.cache import footprint
from ui.text.words import LANGUAGE

if TYPE_CHECKING:
    from streamlit.runtime.app_session import AppSession
    from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
    from streamlit.runtime.state.session_state import SessionState

_LEAST = 2**16  # bytes that a file counts for, however small: it has a name and a record too


def sessions() -> int:
    """How many visitors are connected."""
    found: Any = get_instance().stats_mgr.get_stats(["active_sessions"])
    return sum(int(stat.value) for stats in found.values() for stat in stats)


def upload_bytes(session: str | None = None) -> int:
    """Of all that is uploaded and kept, or of what one session has."""
    storage = _uploads().file_storage
    kept = list(storage.values()) if session is None else [storage.get(session, {})]
    return sum(max(_LEAST, len(file.data)) for files in kept for file in list(files.values()))


def tidy_uploads(session: str, most: int) -> int:
    """Let go of a session's oldest files until those that stay have at most so many bytes; how many went."""
    files = list(_uploads().file_storage.get(session, {}).values())
    gone = 0
    while files and sum(max(_LEAST, len(file.data)) for file in files) > most:
        _uploads().remove_file(session, files.pop(0).file_id)
        gone += 1
    return gone


def session_bytes() -> int:
    """Of all that is kept for windows: uploads, what their controls are set to, and what pages keep beside them."""
    return upload_bytes() + sum(_held(session.session_state) for session in _open_sessions())


def hold_within(most: int, of_all: int, notice: Callable[[Iterable[str]], bytes]) -> int:
    """Windows that hold more than so many bytes begin anew, and the largest while all hold too much; how many.

    Args:
        most: bytes that one window may hold.
        of_all: bytes that all windows may hold.
        notice: what is shown in a window that begins anew, by the languages it may be in, the best first.
    """
    held = [(_held(session.session_state), session) for session in _open_sessions()]
    together, begun = sum(nbytes for nbytes, _ in held), 0
    for nbytes, session in sorted(held, key=lambda one: -one[0]):
        if nbytes <= most and together <= of_all:
            break
        wanted = _languages(session)
        forget_controls(session.session_state)  # of what no page has, Streamlit's own clearing would let nothing go
        session.session_state.clear()
        session._enqueue_forward_msg(ForwardMsg.FromString(notice(wanted)))
        together, begun = together - nbytes, begun + 1
    return begun


def forget_controls(state: SessionState) -> None:
    """Let go of what a window's controls are set to: its next run begins with what browser and address say.

    Streamlit reads what came for a control at the start of each run, until one goes through: what no page sends, and
    nobody can read, would make all of them fail. It also refuses to let a page write what the address says of a
    control that is bound to it, and would do so for one that is set to nothing any more.
    """
    names = set(state._key_id_mapper.id_key_mapping.values())
    state._new_widget_state.states = {}
    state._new_session_state = {k: v for k, v in list(state._new_session_state.items()) if k not in names}
    state._old_state = {k: v for k, v in list(state._old_state.items()) if not is_element_id(k) and k not in names}
    for control in list(state.query_params._bindings_by_widget):
        state.query_params.unbind_widget(control)


def _languages(session: AppSession) -> list[str]:
    """What was chosen in a window, and what its browser speaks."""
    state = session.session_state
    chosen = [str(state[LANGUAGE])] if LANGUAGE in state else []
    return [*chosen, session._client_state.context_info.locale]


def _held(state: SessionState) -> int:
    came = list(state._new_widget_state.states.values())
    return footprint(dict(state._old_state)) + sum(
        one.value.ByteSize() if isinstance(one, Serialized) else footprint(one.value) for one in came
    )


def _open_sessions() -> list[AppSession]:
    manager: Any = get_instance()._session_mgr
    return [one.session for one in manager.list_active_sessions()]


def forget_those_who_left() -> None:
    """End the sessions that nobody came back to. Streamlit does so when the next visitor leaves; none may."""
    manager: Any = get_instance()._session_mgr
    manager._session_storage._cache.expire()


def _uploads() -> MemoryUploadedFileManager:
    return cast("MemoryUploadedFileManager", get_instance().uploaded_file_mgr)
