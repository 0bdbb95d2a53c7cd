"""Private names of Streamlit and uvicorn, what they are used for, and messages of a run in batches."""

import ast
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit import config, net_util
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.testing.v1 import AppTest
from streamlit.web.server.server_util import is_url_from_allowed_origins

from serving.uvicorn_internals import self_test as uvicorn_self_test
from serving.uvicorn_internals.self_test import require_names
from ui.app.local_middleware import local_middleware
from ui.streamlit_internals import front_end, self_test
from ui.streamlit_internals.batched_messages import MessageBatch
from ui.streamlit_internals.script_run import forbid_address_lookup, read_options_without_lock
from viz_core.runtime.packages import PrivateName

FOLDER = Path(self_test.__file__).parent


@pytest.fixture(autouse=True)
def fresh_answers() -> Iterator[None]:
    """The self-test's result is cached: not over these tests."""
    self_test.missing.cache_clear()
    yield
    self_test.missing.cache_clear()


def test_every_private_name_that_is_used_is_in_the_table() -> None:
    """And every name of the table is used by the module that it is for."""
    listed = {name.path.rpartition(".")[2].rpartition(":")[2] for name in self_test.PRIVATE_NAMES}
    sources = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.py")}
    trees = {stem: ast.parse(source) for stem, source in sources.items() if stem != "self_test"}
    own = {
        node.attr
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    }
    used = {
        node.attr
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
    }
    assert used - own <= listed
    for name in self_test.PRIVATE_NAMES:
        assert name.path.rpartition(".")[2].rpartition(":")[2] in sources[name.feature], name


def test_a_name_that_is_gone_is_named_with_what_does_not_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert self_test.missing() == ()
    assert uvicorn_self_test.missing() == []
    self_test.missing.cache_clear()
    monkeypatch.setattr(front_end, "_STATIC", tmp_path)
    monkeypatch.delattr(AppSession, "has_fragment")
    monkeypatch.delattr(ScriptRunner, "_maybe_handle_execution_control_request")
    gone = {name.feature: name for name in self_test.missing()}
    assert gone.keys() == {"message_filter", "batched_messages", "front_end"}
    assert gone["message_filter"].path.endswith("AppSession.has_fragment")
    assert "part of a page" in gone["message_filter"].without
    works = [self_test.works(feature) for feature in ("message_filter", "batched_messages", "sessions")]
    assert works == [False, False, True]
    assert local_middleware() == [], "requests reach Streamlit as they came"


def test_a_public_server_does_not_start_without_it() -> None:
    require_names([])
    with pytest.raises(SystemExit, match="lack private names.*\n.*nowhere:name: nothing works"):
        require_names([PrivateName("nowhere:name", "feature", "nothing works")])


@pytest.mark.attack("sockets")
def test_a_foreign_origin_is_refused_without_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[object] = []
    monkeypatch.setattr(net_util, "get_external_ip", net_util.get_external_ip)  # given back after the test
    monkeypatch.setattr("socket.getaddrinfo", lambda *to, **_how: requests.append(to) or [])
    forbid_address_lookup()
    assert not is_url_from_allowed_origins("https://evil.example")
    assert requests == []


def test_options_are_read_while_another_session_has_their_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "get_option", config.get_option)  # given back after the test
    read_options_without_lock()
    found: list[object] = []
    other = threading.Thread(target=lambda: found.append(config.get_option("client.toolbarMode")), daemon=True)
    with config._config_lock:
        other.start()
        other.join(timeout=20)
    assert found == [st.get_option("client.toolbarMode")]
    with pytest.raises(RuntimeError, match="not defined"):
        config.get_option("client.noSuchOption")


def _page() -> None:
    import streamlit as st
    from streamlit.runtime.scriptrunner import get_script_run_ctx

    from ui.streamlit_internals.script_run import clearing_fragments

    st.session_state.parts = len(get_script_run_ctx().fragment_storage._fragments)  # from the run before
    with clearing_fragments():
        if st.session_state.get("stops"):
            st.stop()
        st.fragment(lambda: st.write("a part"))()


def test_parts_that_a_stopped_page_lacks_cannot_be_requested() -> None:
    app = AppTest.from_function(_page).run()
    assert app.run().session_state.parts == 1
    app.session_state.stops = True
    app.run()
    assert app.run().session_state.parts == 0


def _left_page() -> None:
    import threading
    from copy import copy

    import streamlit as st
    from streamlit.runtime.scriptrunner import add_script_run_ctx, get_script_run_ctx

    from ui.streamlit_internals.batched_messages import batched_messages, flush_messages
    from ui.streamlit_internals.script_run import clearing_fragments

    run = get_script_run_ctx()
    st.session_state.fragments = run.fragment_storage

    def next_page() -> None:
        add_script_run_ctx(threading.current_thread(), copy(run))
        with clearing_fragments():
            run.fragment_storage.register("next", print)

    with clearing_fragments(), batched_messages():
        st.write("a picture")
        flush_messages(pause=0.01)
        st.write("the rest")  # the last that this page draws, before the link is followed
        run.script_requests.request_stop()
        other = threading.Thread(target=next_page)
        other.start()
        other.join()


def test_a_page_that_is_left_while_its_picture_is_looked_at_leaves_the_next_one_its_parts() -> None:
    """Its late end dropped them: a section that was opened there stayed empty."""
    app = AppTest.from_function(_left_page).run()
    assert not app.exception
    assert app.session_state.fragments.contains("next")


class Line:
    """Where messages go; a run that shall end raises."""

    def __init__(self) -> None:
        self.now, self.sent, self.ends = 0.0, [], False

    def send(self, message: ForwardMsg) -> None:
        self.sent.append(message.hash)

    def check(self) -> None:
        if self.ends:
            raise InterruptedError

    def batch(self) -> MessageBatch:
        return MessageBatch(self.send, self.check, lambda: self.now)


def test_what_comes_within_a_moment_goes_out_together_and_in_order() -> None:
    line = Line()
    batch = line.batch()
    for line.now, name in ((0.01, "a"), (0.02, "b"), (0.049, "c")):
        batch(ForwardMsg(hash=name))
    assert line.sent == []
    line.now = 0.05
    batch(ForwardMsg(hash="d"))
    assert line.sent == list("abcd")
    line.now = 0.09
    batch(ForwardMsg(hash="e"))
    assert line.sent == list("abcd")
    batch.flush()
    batch.flush()
    assert line.sent == list("abcde")


def test_a_run_that_shall_end_ends_at_its_next_message_though_nothing_is_sent() -> None:
    line = Line()
    batch = line.batch()
    batch(ForwardMsg(hash="a"))
    line.ends = True
    with pytest.raises(InterruptedError):
        batch(ForwardMsg(hash="b"))
    batch.flush()
    assert line.sent == ["a"]  # what came before it is not lost
