"""The run of a page that this thread is in, and types that Streamlit has no public name for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary, ref

import streamlit as st
from streamlit import config, net_util
from streamlit.elements.lib.mutable_tab_container import TabContainer
from streamlit.errors import StreamlitInvalidLayoutContextError
from streamlit.navigation.page import StreamlitPage
from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session, exists
from streamlit.runtime.scriptrunner import StopException, add_script_run_ctx, get_script_run_ctx
from streamlit.runtime.state.session_state import SCRIPT_RUN_WITHOUT_ERRORS_KEY

from serving.http.access import network_of
from ui.streamlit_internals.message_filter import find_session
from ui.streamlit_internals.self_test import works

if TYPE_CHECKING:
    from streamlit.runtime.state.session_state import SessionState
Value = TypeVar("Value")
_found_in_run: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
_last_run: WeakKeyDictionary[Any, Callable[[], Any]] = WeakKeyDictionary()  # by the fragments of its session

__all__ = ["StreamlitInvalidLayoutContextError", "StreamlitPage", "TabContainer"]


def is_served() -> bool:
    """Whether a server runs the pages, not a test."""
    return exists()


def in_browser() -> bool:
    """Whether a browser shows the page: each sends its time zone. Anyone else is sent all of a page."""
    return st.context.timezone is not None


def in_script_run() -> bool:
    """Whether this thread runs a page: a server that warms up, or makes a file, runs none."""
    return get_script_run_ctx(suppress_warning=True) is not None


def window_id() -> str | None:
    """Return what tells this run's window from others; None outside of a run."""
    run = get_script_run_ctx(suppress_warning=True)
    return None if run is None else run.session_id


def network() -> str | None:
    """Return the address of this run's visitor, as limits count it; None on this machine and outside of a run."""
    address = st.context.ip_address if in_script_run() else None
    return network_of(address) if isinstance(address, str) else None


def once_per_run(name: str, compute: Callable[[], Value]) -> Value:
    """Return what `compute` returns, computed once in a run of a page or fragment, after its callbacks."""
    run = get_script_run_ctx(suppress_warning=True)
    if run is None or run.parallel_coordinator is None or not run.has_script_started or not works("script_run"):
        return compute()
    # Each run makes a coordinator of its own, and the context is that of a session.
    found = _found_in_run.setdefault(run.parallel_coordinator, {})
    if name not in found:
        found[name] = compute()
    return found[name]  # type: ignore[no-any-return]


def is_history_navigation() -> bool:
    """Whether this run answers the browser's Back or Forward button."""
    run = get_script_run_ctx(suppress_warning=True)
    return run is not None and run.is_history_navigation


def joining_run() -> Callable[[], object]:
    """A function for another thread that makes it part of this run."""
    run = get_script_run_ctx()
    return lambda: add_script_run_ctx(threading.current_thread(), run)


def session_state() -> SessionState | None:
    """All that is held for the visitor of this run: widgets, and what pages store beside them."""
    run = get_script_run_ctx(suppress_warning=True)
    session = None if run is None else find_session(run.session_id)
    return None if session is None else session.session_state


def last_run_failed(state: SessionState) -> bool:
    return SCRIPT_RUN_WITHOUT_ERRORS_KEY in state and not state[SCRIPT_RUN_WITHOUT_ERRORS_KEY]


@contextmanager
def clearing_fragments() -> Iterator[None]:
    """Forget the fragments that a page lacks where it stops, as Streamlit does where a page runs to its end.

    One that is requested later would be drawn where nothing is, and break the page. A run that stops because another
    page was requested leaves them alone: by now they are those of that page.
    """
    run = get_script_run_ctx(suppress_warning=True)
    if run is None or not works("script_run"):
        yield
        return
    _last_run[run.fragment_storage] = ref(run)
    try:
        yield
    except StopException:
        if _last_run[run.fragment_storage]() is run:
            run.fragment_storage.clear(new_fragment_ids=run.shared.new_fragment_ids.snapshot())
        raise


def forbid_address_lookup() -> None:
    """Have Streamlit refuse a foreign origin without asking a site of the internet, which blocks the event loop."""
    net_util.get_external_ip = lambda: None


def read_options_without_lock() -> None:
    """Have Streamlit read its options, as it does for every message, without the one lock of all sessions.

    Options are parsed into a new table, which takes the place of the old one whole: a read needs no lock.
    """
    locked = config.get_option

    def get_option(key: str) -> object:
        option = config.get_config_options().get(key)
        return locked(key) if option is None else option.value  # which says that there is none

    if works("script_run"):
        config.get_option = get_option


def build_theme_once() -> None:
    """Have Streamlit build the theme, which it sends with every run, once for each time its options are parsed.

    It would read all options for each of six sections.
    """
    build, built = app_session._populate_theme_msg, dict[str, tuple[object, CustomThemeConfig]]()

    def populate(msg: CustomThemeConfig, section: str = "theme") -> None:
        options = config.get_config_options()
        if section not in built or built[section][0] is not options:
            theme = CustomThemeConfig()
            build(theme, section)
            built[section] = options, theme
        if built[section][1].ListFields():  # merging nothing would say that the section is there
            msg.MergeFrom(built[section][1])

    if works("script_run"):
        app_session._populate_theme_msg = populate
