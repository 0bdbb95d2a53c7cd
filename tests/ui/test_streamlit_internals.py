"""Private names of Streamlit and uvicorn that are missing, and what the others are used for."""

import ast
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from copy import copy
from pathlib import Path

import pytest
import streamlit as st
from streamlit import config, net_util
from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.testing.v1 import AppTest
from streamlit.web.server.server_util import is_url_from_allowed_origins

from serving.uvicorn_internals import self_test as uvicorn_self_test
from serving.uvicorn_internals.self_test import require_names
from ui.app.local_middleware import local_middleware
from ui.streamlit_internals import front_end, self_test
from ui.streamlit_internals.script_run import build_theme_once, forbid_address_lookup, read_options_without_lock
from viz_core.runtime.packages import PrivateName, exists, missing

FOLDER = Path(self_test.__file__).parent
ROOT = FOLDER.parents[1]


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
    assert [self_test.works(feature) for feature in ("message_filter", "batched_messages", "sessions")] == [
        False,
        False,
        True,
    ]
    assert local_middleware() == [], "requests reach Streamlit as they came"


def test_a_public_server_does_not_start_without_it() -> None:
    require_names([])
    with pytest.raises(SystemExit, match="lack private names.*\n.*nowhere:name: nothing works"):
        require_names([PrivateName("nowhere:name", "feature", "nothing works")])


def test_a_streamlit_without_a_name_that_is_imported_is_refused_with_the_tested_version() -> None:
    program = (
        "import streamlit.runtime.state.session_state as state\n"
        "del state.SCRIPT_RUN_WITHOUT_ERRORS_KEY\n"
        "import ui.streamlit_internals.self_test"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False)
    (tested,) = re.findall(r"^streamlit==\S+", (ROOT / "requirements.txt").read_text("utf-8"), re.MULTILINE)
    assert run.returncode == 1
    assert len(run.stderr.splitlines()) == 1, run.stderr
    assert "SCRIPT_RUN_WITHOUT_ERRORS_KEY" in run.stderr
    assert f"Install {tested}, " in run.stderr


def _page() -> None:
    import streamlit as st
    from streamlit.runtime.scriptrunner import get_script_run_ctx

    from ui.streamlit_internals.script_run import clearing_fragments

    run = get_script_run_ctx()
    assert run is not None
    st.session_state.parts = len(run.fragment_storage._fragments)  # type: ignore[attr-defined]  # from the run before
    with clearing_fragments():
        if st.session_state.get("stops"):
            st.stop()
        st.fragment(lambda: st.write("a part"))()


def test_parts_that_a_stopped_page_lacks_cannot_be_asked_for() -> None:
    app = AppTest.from_function(_page).run()
    assert app.run().session_state.parts == 1
    app.session_state.stops = True
    app.run()
    assert app.run().session_state.parts == 0
    assert not app.exception


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


def theme() -> CustomThemeConfig:
    """The theme as a session builds it: some sections, one without an option, lie in another."""
    message = CustomThemeConfig()
    for section, part in (("theme", message), ("theme.dark", message.dark), ("theme.sidebar", message.sidebar)):
        app_session._populate_theme_msg(part, section)
    return message


def test_the_theme_is_built_once_and_again_where_its_options_change(monkeypatch: pytest.MonkeyPatch) -> None:
    expected, sections = theme(), list[str]()
    build = app_session._populate_theme_msg
    monkeypatch.setattr(
        app_session, "_populate_theme_msg", lambda part, section: sections.append(section) or build(part, section)
    )
    build_theme_once()
    assert [theme(), theme()] == [expected, expected]
    assert sections == ["theme", "theme.dark", "theme.sidebar"]
    monkeypatch.setattr(config, "_config_options", {name: copy(it) for name, it in config._config_options.items()})
    config._config_options["theme.baseFontSize"].set_value(expected.base_font_size + 1, "a test")
    assert theme().base_font_size == expected.base_font_size + 1


def _reruns_three_times() -> None:
    import streamlit as st

    from ui.streamlit_internals.script_run import once_per_run

    def count() -> int:
        st.session_state.runs = st.session_state.get("runs", 0) + 1
        return st.session_state.runs

    st.session_state.found = [once_per_run("count", count) for _ in range(3)]


def test_what_is_found_once_in_a_run_is_found_anew_in_the_next() -> None:
    app = AppTest.from_function(_reruns_three_times).run()
    assert app.session_state.found == [1, 1, 1]
    assert app.run().session_state.found == [2, 2, 2]


class Owner:
    there = 1

    def __init__(self) -> None:
        self.set_here = 1


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [("Owner.there", True), ("Owner.set_here", True), ("Owner.gone", False), ("Gone.x", False)],
)
def test_a_name_exists_on_a_class_or_its_instances(attribute: str, expected: bool) -> None:
    assert exists(f"{__name__}:{attribute}") is expected
    assert not exists(f"no.such.module:{attribute}")
    names = [PrivateName(f"{__name__}:{attribute}", "feature", "nothing")]
    assert missing(names) == ([] if expected else names)
