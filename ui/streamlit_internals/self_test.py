"""A test at start: which private names of Streamlit the installed version lacks, and what does not work then."""

from functools import cache

from ui.streamlit_internals.front_end import has_chunk, index_html
from viz_core.runtime import packages as private_names
from viz_core.runtime.packages import PrivateName

_RUNTIME = "streamlit.runtime.runtime:Runtime"
_SESSION = "streamlit.runtime.app_session:AppSession"
_STATE = "streamlit.runtime.state.session_state:SessionState"
_RUN = "streamlit.runtime.scriptrunner_utils.script_run_context:ScriptRunContext"
_RUNNER = "streamlit.runtime.scriptrunner.script_runner:ScriptRunner"
_OLD_STATES = "what a callback sets is set back by a click that follows within a moment"
_PARTS_LOST = "a part of a page may stay empty or grey, or be drawn over the next page"
_SLOW = "pages arrive in single messages and are drawn more slowly"
_STOPPED = "a part that a stopped page lacks can still be requested, and breaks the page"
_MEMORY = "the memory of sessions is not bounded"
_TAKEN = "whoever knows the id of a session can take it over"
_LOADS = "pages load their scripts one after the other"

PRIVATE_NAMES = (
    PrivateName(f"{_RUNTIME}.get_app_session", "message_filter", _OLD_STATES),
    PrivateName(f"{_SESSION}.has_fragment", "message_filter", _PARTS_LOST),
    PrivateName(f"{_SESSION}.session_state", "message_filter", _OLD_STATES),
    PrivateName(f"{_STATE}.get_widget_metadata", "message_filter", _OLD_STATES),
    PrivateName(f"{_STATE}.get_widget_value", "message_filter", _OLD_STATES),
    PrivateName("streamlit.net_util:get_external_ip", "script_run", "a foreign origin can block the server"),
    PrivateName("streamlit.runtime.state.session_state:WStates.set_widget_from_proto", "message_filter", _OLD_STATES),
    PrivateName("streamlit.testing.v1.app_test:AppTest._page_hash", "front_end", "the static site cannot be built"),
    PrivateName(f"{_RUN}._enqueue", "batched_messages", _SLOW),
    PrivateName(f"{_RUNNER}.on_event", "batched_messages", _SLOW),
    PrivateName(f"{_RUNNER}._maybe_handle_execution_control_request", "batched_messages", _SLOW),
    PrivateName(f"{_RUN}.fragment_storage", "script_run", _STOPPED),
    PrivateName(f"{_RUN}.shared", "script_run", _STOPPED),
    PrivateName(f"{_RUN}.parallel_coordinator", "script_run", "words are looked up more slowly"),
    PrivateName(f"{_RUN}.has_script_started", "script_run", "words are looked up more slowly"),
    PrivateName("streamlit.config:get_config_options", "script_run", "sessions wait for each other at every message"),
    PrivateName("streamlit.runtime.app_session:_populate_theme_msg", "script_run", "every run builds the theme anew"),
    PrivateName(f"{_RUN}.is_history_navigation", "script_run", "Back does not restore choices"),
    PrivateName(
        "streamlit.runtime.scriptrunner:add_script_run_ctx", "script_run", "slow work cannot draw its progress"
    ),
    PrivateName("streamlit.web.server.starlette.starlette_app_utils:decode_xsrf_token_string", "sessions", _TAKEN),
    PrivateName(f"{_SESSION}._user_info", "sessions", _TAKEN),
    PrivateName(f"{_STATE}._old_state", "sessions", _MEMORY),
    PrivateName(f"{_STATE}._new_widget_state", "sessions", _MEMORY),
    PrivateName(f"{_SESSION}._client_state", "sessions", _MEMORY),
    PrivateName(f"{_SESSION}._enqueue_forward_msg", "sessions", _MEMORY),
    PrivateName("streamlit.runtime.state.query_params:QueryParams.unbind_widget", "sessions", _MEMORY),
    PrivateName(f"{_RUNTIME}._session_mgr", "sessions", _MEMORY),
    PrivateName(
        "streamlit.runtime.websocket_session_manager:WebsocketSessionManager._session_storage", "sessions", _MEMORY
    ),
    PrivateName("streamlit.runtime.memory_session_storage:MemorySessionStorage._cache", "sessions", _MEMORY),
    PrivateName(
        "streamlit.runtime.memory_uploaded_file_manager:MemoryUploadedFileManager.file_storage", "sessions", _MEMORY
    ),
)
"""Every name that `ui.streamlit_internals` uses and that Streamlit does not document."""


@cache
def missing() -> tuple[PrivateName, ...]:
    """The names that the installed Streamlit lacks."""
    lacking = private_names.missing(PRIVATE_NAMES)
    try:
        whole = "</head>" in index_html() and has_chunk("BidiComponent")
    except OSError:
        whole = False
    if not whole:
        lacking.append(PrivateName("streamlit/static/index.html", "front_end", _LOADS))
    return tuple(lacking)


def works(feature: str) -> bool:
    """Whether the installed Streamlit has every private name that a module of this folder uses."""
    return all(name.feature != feature for name in missing())
