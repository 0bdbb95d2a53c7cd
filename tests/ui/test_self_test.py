"""A version of Streamlit or uvicorn that lacks a private name: which one is said, and what does not work then."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.testing.v1 import AppTest

from serving.uvicorn_internals import self_test as uvicorn_self_test
from serving.uvicorn_internals.self_test import require_names
from ui.app.local_middleware import local_middleware
from ui.streamlit_internals import self_test
from viz_core.runtime.packages import PrivateName

FOLDER = Path(self_test.__file__).parent


@pytest.fixture(autouse=True)
def fresh_answers() -> Iterator[None]:
    """The self-test's result is cached: not over these tests."""
    self_test.missing.cache_clear()
    yield
    self_test.missing.cache_clear()


def test_the_installed_versions_have_all() -> None:
    assert self_test.missing() == ()
    assert uvicorn_self_test.missing() == []


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


def test_a_name_that_is_gone_is_named_with_what_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(AppSession, "has_fragment")
    (gone,) = self_test.missing()
    assert gone.path.endswith("AppSession.has_fragment")
    assert "part of a page" in gone.without
    assert not self_test.works("message_filter")
    assert self_test.works("sessions")
    assert local_middleware() == [], "requests reach Streamlit as they came"


def test_a_public_server_does_not_start_without_it() -> None:
    require_names([])
    with pytest.raises(SystemExit, match="lack private names.*\n.*nowhere:name: nothing works"):
        require_names([PrivateName("nowhere:name", "feature", "nothing works")])


def page() -> None:
    import streamlit as st

    from ui.streamlit_internals.batched_messages import MessageBatch, batched_messages
    from ui.streamlit_internals.script_run import get_script_run_ctx

    with batched_messages():
        run = get_script_run_ctx()
        assert run is not None
        st.write(str(isinstance(run._enqueue, MessageBatch)))


@pytest.mark.parametrize("there", [True, False])
def test_a_page_is_sent_message_by_message_where_batches_do_not_work(
    monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    if not there:
        monkeypatch.setattr(self_test, "works", lambda feature: feature != "batched_messages")
        monkeypatch.setattr("ui.streamlit_internals.batched_messages.works", self_test.works)
    app = AppTest.from_function(page).run()
    assert not app.exception
    assert app.markdown[0].value == str(there)


def test_a_name_that_was_renamed_in_streamlit_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    method = ScriptRunner._maybe_handle_execution_control_request
    monkeypatch.delattr(ScriptRunner, "_maybe_handle_execution_control_request")
    monkeypatch.setattr(ScriptRunner, "handle_execution_control_request", method, raising=False)
    assert [name.feature for name in self_test.missing()] == ["batched_messages"]
    assert not self_test.works("batched_messages")
