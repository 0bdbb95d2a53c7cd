"""Errors as sentences, and sessions."""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.proto.ClientState_pb2 import ClientState, ContextInfo
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import SCRIPT_RUN_WITHOUT_ERRORS_KEY, SessionState
from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string

from tests.attacks.over_http import wrong_values
from tests.source_files import ROOT
from ui.app.middleware import show_error
from ui.streamlit_internals import script_run, sessions
from ui.streamlit_internals.mailbox import Mailbox
from ui.streamlit_internals.sessions import HEADER, browser_of, identify
from ui.text.translations import translate_error
from ui.text.words import ENGLISH, LANGUAGE, languages, sentences_of_errors
from viz_core.hub import HubError
from viz_core.pretrained import TextError
from viz_core.runtime.assets import AssetError

CODE = [path for folder in ("viz_core", "serving", "ui", "pages") for path in sorted((ROOT / folder).rglob("*.py"))]
OTHERS = [name for name in languages() if name != ENGLISH]
_SENTENCE = re.compile(r"[A-Z{].* .*\.")


def _classes(trees: list[ast.Module]) -> set[str]:
    """RefusalError and all that are made of it."""
    found, before = {"RefusalError"}, 0
    while len(found) > before:
        before = len(found)
        for node in (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
            if any(isinstance(base, ast.Name) and base.id in found for base in node.bases):
                found.add(node.name)
    return found


def _sentences(tree: ast.Module, classes: set[str]) -> Iterator[str]:
    """The sentences a module gives them; where one goes by a name, all that stand in the module."""
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id not in classes:
            continue
        given = call.args[0]
        if isinstance(given, ast.Constant):
            yield str(given.value)
        elif not isinstance(given, ast.Attribute):  # that of another error
            assert not isinstance(given, ast.JoinedStr), f"{ast.unparse(call)}: a literal, and values by name"
            texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in documents)
            yield from (text.value for text in texts if isinstance(text.value, str) and _SENTENCE.fullmatch(text.value))


def _of_attributes(trees: list[ast.Module], classes: set[str]) -> Iterator[str]:
    """The sentences of class attributes that an error is made of, as in HubError(self.too_long)."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    calls = (node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
    names = {call.args[0].attr for call in calls if call.func.id in classes and isinstance(call.args[0], ast.Attribute)}
    for statement in (each for node in nodes if isinstance(node, ast.ClassDef) for each in node.body):
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        value = getattr(statement, "value", None)
        named = any(isinstance(target, ast.Name) and target.id in names for target in targets)
        if named and isinstance(value, ast.Constant):
            yield str(value.value)


@cache
def sentences() -> frozenset[str]:
    """Every sentence that an error of the library may say."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in CODE]
    classes = _classes(trees)
    found = {sentence for tree in trees for sentence in _sentences(tree, classes)}
    return frozenset(found.union(_of_attributes(trees, classes)))


@pytest.mark.parametrize("language", OTHERS)
def test_every_sentence_has_words(language: str) -> None:
    """And nothing is translated that nobody says any more."""
    english, other = sentences() | {"{detail}"}, sentences_of_errors(language)
    assert sorted(english - other.keys()) == []
    assert sorted(other.keys() - english) == []
    for sentence, words in other.items():
        wanted = set(re.findall(r"\{(\w+)", sentence))
        assert set(re.findall(r"\{(\w+)\}", words)) == wanted, sentence


@pytest.mark.parametrize(
    ("error", "language", "translation"),
    [
        (
            TextError("This text has {count:,} characters; at most {most:,} can be translated.", count=2001, most=2000),
            "pt-BR",
            "Este texto tem 2.001 caracteres; podem ser traduzidos no máximo 2.000.",
        ),
        (
            HubError(
                "{name} cannot be loaded: {detail}", name="own", detail=AssetError("{file}.md has no title", file="a")
            ),
            "zh-TW",
            "無法載入 own：a.md 沒有標題",
        ),
        (ValueError("heads: expected 1, got 2"), "zh-TW", "函式庫的英文訊息：heads: expected 1, got 2"),
        (
            HubError("{typed} is not among the folders that this host allows.", typed="{most} $a$ 1.5"),
            "pt-BR",
            "{most} $a$ 1.5 não está entre as pastas que este servidor permite.",
        ),
        (HubError("{name} has no label {label!r}.", name="own", label="1.5"), "zh-TW", "own 沒有標籤「1.5」。"),
    ],
)
def test_an_error_is_told_in_a_language(error: Exception, language: str, translation: str) -> None:
    assert translate_error(error, language) == translation


def test_no_page_shows_an_error_in_english_alone() -> None:
    """str(error) stands where errors are put into words, and nowhere else on the way to a page."""
    shown = re.compile(r"str\((error|why)\)|\{(error|why)(!r)?\}")
    places = [path for folder in ("pages", "ui") for path in sorted((ROOT / folder).rglob("*.py"))]
    found = {path.relative_to(ROOT).as_posix() for path in places if shown.search(path.read_text(encoding="utf-8"))}
    assert found == {"ui/text/translations.py"}


WIDTH = "$$ID-0123-width"
MB = 2**20


def window() -> SessionState:
    """A window with a slider, and something that a page keeps beside it."""
    state = SessionState()
    state["kept"] = "by the page"
    metadata = WidgetMetadata(WIDTH, lambda value: 1.0 * value, lambda value: value, "double_value")
    state._new_widget_state.set_widget_metadata(metadata)
    state._set_key_widget_mapping(WIDTH, "width")
    return state


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> dict[str, SimpleNamespace]:
    """Windows that are open, by name; they write down what is sent to them."""
    windows = {}
    for name in ("small", "large"):
        sent: list[ForwardMsg] = []
        client = ClientState(context_info=ContextInfo(locale="pt"))
        windows[name] = SimpleNamespace(
            session_state=window(), sent=sent, _enqueue_forward_msg=sent.append, _client_state=client
        )
    runtime = SimpleNamespace(uploaded_file_mgr=MemoryUploadedFileManager("/upload"))
    monkeypatch.setattr(sessions, "get_instance", lambda: runtime)
    monkeypatch.setattr(sessions, "open_sessions", windows.values)
    return windows


@pytest.mark.attack("forged messages")
@pytest.mark.parametrize("what", ["the string ''", "the component value {", "the strings ''", "bytes", "a chat"])
def test_what_cannot_be_read_fails_once(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit reads it again before each run, and would fail each time."""
    state = window()
    state._new_widget_state.set_widget_from_proto(wrong_values()[what](WIDTH))
    for _ in range(2):
        with pytest.raises((TypeError, ValueError, AttributeError)) as failed:
            state._compact_state()
    monkeypatch.setattr(script_run, "session_state", lambda: state)
    assert show_error(failed.value)
    state._compact_state()
    assert (state["kept"], WIDTH in state) == ("by the page", False)
    state[SCRIPT_RUN_WITHOUT_ERRORS_KEY] = False
    assert show_error(failed.value)
    assert "kept" not in state, "where the next run fails too, it was not the controls"


@pytest.mark.attack("forged messages")
def test_a_value_that_can_be_read_and_breaks_the_page_is_not_kept_either() -> None:
    """And a page may write the address of a control that is forgotten: Streamlit refuses it for one that is bound."""
    state = window()
    state.query_params.bind_widget("width", WIDTH, "double_value", "")
    for forged in (WidgetState(id=WIDTH, double_value=1e308), WidgetState(id="x", int_value=1)):
        state._new_widget_state.set_widget_from_proto(forged)
    state._compact_state()
    assert state["width"] == 1e308
    state["width"] = 1e309  # by the page, in the run that failed
    sessions.forget_widgets(state)
    assert list(state) == ["kept"]
    state.query_params["width"] = "3"
    assert state.query_params["width"] == "3"


def _notice(wanted: Iterable[str]) -> bytes:
    return Mailbox.notice(" ".join(wanted))


@pytest.mark.attack("forged messages")
def test_who_holds_too_much_begins_anew_and_reads_why(there: dict[str, SimpleNamespace]) -> None:
    for number in range(40):
        large = WidgetState(id=f"$$ID-{number}-text", string_value="x" * MB)
        there["large"].session_state._new_widget_state.set_widget_from_proto(large)
    there["small"].session_state["text"] = "x" * MB
    there["small"].session_state._compact_state()
    assert 41 * MB < sessions.session_bytes() < 41.1 * MB, "what was read counts as what came"
    assert sessions.limit_session_bytes(32 * MB, 512 * MB, _notice, LANGUAGE) == 1
    assert sessions.session_bytes() < 1.1 * MB
    assert [one.delta.new_element.toast.body for one in there["large"].sent] == ["pt"]
    assert "kept" not in there["large"].session_state
    assert there["small"].session_state["kept"] == "by the page", "nobody else notices"
    assert there["small"].sent == []


@pytest.mark.attack("forged messages")
def test_where_all_hold_too_much_the_largest_begins_anew(there: dict[str, SimpleNamespace]) -> None:
    for name, count in (("small", 3), ("large", 4)):
        there[name].session_state[LANGUAGE] = "zh-TW"
        for number in range(count):
            there[name].session_state[f"text-{number}"] = "x" * MB
        there[name].session_state._compact_state()
    assert sessions.limit_session_bytes(32 * MB, 6 * MB, _notice, LANGUAGE) == 1
    assert [one.delta.new_element.toast.body for one in there["large"].sent] == ["zh-TW pt"]
    assert there["small"].sent == []
    assert sessions.limit_session_bytes(32 * MB, 6 * MB, _notice, LANGUAGE) == 0


TOKEN = bytes(range(16))


def scope(cookie: str = "", *headers: tuple[bytes, bytes]) -> dict[str, Any]:
    own = [(b"cookie", cookie.encode())] if cookie else []
    return {"type": "websocket", "headers": [*own, *headers]}


def cookie(token: bytes) -> str:
    return f"other=1; _streamlit_xsrf={generate_xsrf_token_string(token)}"


def header(found: Any) -> list[bytes]:
    return [value for name, value in found["headers"] if name == HEADER]


@pytest.mark.attack("forged messages")
def test_a_browser_is_the_same_after_its_cookie_is_masked_again() -> None:
    one, again, other = (header(identify(scope(cookie(token)))) for token in (TOKEN, TOKEN, TOKEN[::-1]))
    assert one == again
    assert one != other
    assert one == [str(browser_of(scope(cookie(TOKEN)))).encode()]


@pytest.mark.attack("forged messages")
@pytest.mark.parametrize("name", [b"x-atlas-browser", b"X-Atlas-Browser"])
def test_nobody_names_their_browser_themselves(name: bytes) -> None:
    (browser,) = header(identify(scope(cookie(TOKEN), (name, b"somebody"))))
    assert browser != b"somebody"


@pytest.mark.attack("forged messages")
@pytest.mark.parametrize(
    "sent", ["", "a=1", "_streamlit_xsrf=", "_streamlit_xsrf=2|x|y|z", '_streamlit_xsrf="', "=;\xff"]
)
def test_without_a_valid_cookie_each_handshake_is_somebody_else(sent: str) -> None:
    assert browser_of(scope(sent)) is None
    assert header(identify(scope(sent))) != header(identify(scope(sent)))
