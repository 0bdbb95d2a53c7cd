"""What Streamlit holds for its visitors and how much of it, and which browser a session belongs to.

Streamlit resumes a session for whoever names its id, unless the user is another one. A header that no client can set
makes each browser a user of its own: the digest of the cookie that its uploads need too.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any, cast

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import get_instance
from streamlit.runtime.state.common import is_element_id
from streamlit.runtime.state.session_state import Serialized
from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string

from ui.streamlit_internals import script_run
from ui.streamlit_internals.message_filter import open_sessions

if TYPE_CHECKING:
    from streamlit.runtime.app_session import AppSession
    from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
    from streamlit.runtime.state.session_state import SessionState

_LEAST = 2**16  # bytes that a file counts for, however small: it has a name and a record too


def session_count() -> int:
    """Number of visitors that are connected."""
    found: Any = get_instance().stats_mgr.get_stats(["active_sessions"])
    return sum(int(stat.value) for stats in found.values() for stat in stats)


def upload_bytes(session: str | None = None) -> int:
    """Size of all uploads that are held, or of those of one session."""
    storage = _uploads().file_storage
    stored = list(storage.values()) if session is None else [storage.get(session, {})]
    return sum(max(_LEAST, len(file.data)) for files in stored for file in list(files.values()))


def trim_uploads(session: str, most: int) -> int:
    """Delete a session's oldest files until the others have at most `most` bytes; return how many were deleted."""
    files = list(_uploads().file_storage.get(session, {}).values())
    gone = 0
    while files and sum(max(_LEAST, len(file.data)) for file in files) > most:
        _uploads().remove_file(session, files.pop(0).file_id)
        gone += 1
    return gone


def session_bytes() -> int:
    """Size of all that is held for open sessions: uploads, widget values, and what pages store beside them."""
    return upload_bytes() + sum(_state_bytes(session.session_state) for session in open_sessions())


def limit_session_bytes(most: int, of_all: int, notice: Callable[[Iterable[str]], bytes], language: str) -> int:
    """Reset the sessions that hold more than `most` bytes, and the largest while all hold too much; return how many.

    Args:
        most: bytes that one session may hold.
        of_all: bytes that all sessions may hold.
        notice: the message that is shown in a session that is reset, by the languages it may be in, the best first.
        language: the key under which a session stores the language that was chosen in it.
    """
    sizes = [(_state_bytes(session.session_state), session) for session in open_sessions()]
    together, reset = sum(nbytes for nbytes, _ in sizes), 0
    for nbytes, session in sorted(sizes, key=lambda one: -one[0]):
        if nbytes <= most and together <= of_all:
            break
        wanted = _languages(session, language)
        forget_widgets(session.session_state)  # clear() alone would leave what cannot be read, or is bound to the URL
        session.session_state.clear()
        session._enqueue_forward_msg(ForwardMsg.FromString(notice(wanted)))
        together, reset = together - nbytes, reset + 1
    return reset


def notify_all(notice: Callable[[Iterable[str]], bytes], language: str) -> None:
    """Show a sentence in every open session; arguments as of `limit_session_bytes`."""
    for session in open_sessions():
        session._enqueue_forward_msg(ForwardMsg.FromString(notice(_languages(session, language))))


def recover_from_error() -> None:
    """Forget the widget values of this run's visitor; where the run before failed too, what pages store as well.

    A value that no page sends may have been the cause: none is kept, so that the next run is a run like any other.
    """
    state = script_run.session_state()
    if state is not None:
        forget_widgets(state)
        if script_run.last_run_failed(state):
            state.clear()


def forget_widgets(state: SessionState) -> None:
    """Forget all widget values: the next run begins with what browser and address say.

    Streamlit reads what came for a widget at the start of each run, until one succeeds: what cannot be read would make
    all of them fail. It also refuses to let a page write a query parameter that a widget is bound to, and would do so
    for one that has no value any more.
    """
    for widget in [each for each in state if is_element_id(each)]:
        state.query_params.unbind_widget(widget)
    state._new_widget_state.states.clear()  # clear() would read each value, which may fail
    stored = {name: state[name] for name in state if not is_element_id(name)}
    state.clear()
    for name, value in stored.items():
        state[name] = value


def _languages(session: AppSession, key: str) -> list[str]:
    """The language chosen in a session, and its browser's."""
    state = session.session_state
    chosen = [str(state[key])] if key in state else []
    return [*chosen, session._client_state.context_info.locale]


def _state_bytes(state: SessionState) -> int:
    from serving.compute.cache import footprint  # brings torch, which the start need not wait for

    sent = list(state._new_widget_state.states.values())
    return footprint(dict(state._old_state)) + sum(
        one.value.ByteSize() if isinstance(one, Serialized) else footprint(one.value) for one in sent
    )


def end_disconnected_sessions() -> None:
    """End the sessions that nobody came back to. Streamlit does so when the next visitor leaves; none may."""
    manager: Any = get_instance()._session_mgr
    manager._session_storage._cache.expire()


def _uploads() -> MemoryUploadedFileManager:
    return cast("MemoryUploadedFileManager", get_instance().uploaded_file_mgr)


HEADER = b"x-atlas-browser"  # in hosted.toml too
_ATTRIBUTE = "browser"
_COOKIE = "_streamlit_xsrf"
_UNKNOWN = "unknown-"  # a first visit connects before the browser has its cookie


def identify(scope: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Return a request's scope with the header of its browser; without a cookie, of a browser of its own."""
    browser = browser_of(scope) or _UNKNOWN + secrets.token_hex(16)
    others = [(name, value) for name, value in scope.get("headers", ()) if name.lower() != HEADER]
    return {**scope, "headers": [*others, (HEADER, browser.encode())]}


def browser_of(scope: MutableMapping[str, Any]) -> str | None:
    """Return the digest of a browser's cookie, which is masked anew whenever it is set; None without a valid one."""
    for name, value in scope.get("headers", ()):
        if name.lower() == b"cookie":
            try:
                cookie = SimpleCookie(value.decode("latin-1")).get(_COOKIE)
                token = decode_xsrf_token_string(cookie.value)[0] if cookie else None
            except (CookieError, ValueError):
                token = None
            if token:
                return hashlib.sha256(token).hexdigest()
    return None


def owner_of(session_id: str) -> str | None:
    """Return the browser that a connected session belongs to; None where it is unknown or there is no session."""
    session: Any = get_instance().get_app_session(session_id)
    owner = None if session is None else session._user_info.get(_ATTRIBUTE)
    return None if owner is None or owner.startswith(_UNKNOWN) else owner
