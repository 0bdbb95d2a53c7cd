"""What a browser may tell the server, what may not pass, and what becomes of what waits."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.RootContainer_pb2 import RootContainer

from tests.source_files import ROOT
from tests.ui.streamlit_messages import run_begins, run_ends
from ui.app.middleware import refusals
from ui.streamlit_internals.mailbox import Mailbox, MessageLimits
from ui.text.words import languages, load_words

pytestmark = pytest.mark.attack("messages")
MAX = 2**20


def mailbox() -> Mailbox:
    return Mailbox(MessageLimits(downloads=2, message_bytes=MAX))


def run(fragment: str = "", page: str = "transformer", /, **values: str) -> BackMsg:
    """A run of a page with texts in its lines."""
    message = BackMsg()
    message.rerun_script.page_name, message.rerun_script.fragment_id = page, fragment
    for key, value in values.items():
        message.rerun_script.widget_states.widgets.add(id=key, string_value=value)
    return message


def click(*keys: str, size: int = 0) -> BackMsg:
    message = run()
    for key in keys:
        message.rerun_script.widget_states.widgets.add(id=key, json_trigger_value="x" * size)
    return message


def download(number: str) -> BackMsg:
    message = BackMsg()
    message.backend_operation_request.request_id = number
    message.backend_operation_request.deferred_file.SetInParent()
    return message


def files(number: str, count: int = 1) -> BackMsg:
    message = BackMsg()
    message.file_urls_request.request_id = number
    message.file_urls_request.file_names.extend(["x.png"] * count)
    return message


def put(box: Mailbox, *messages: BackMsg) -> list[str | None]:
    return [box.put(message.SerializeToString()) for message in messages]


def taken(box: Mailbox) -> list[BackMsg]:
    found = []
    while (message := box.take()) is not None:
        found.append(BackMsg.FromString(message))
        box.sent(run_begins())
        box.sent(run_ends())
    return found


def states(message: BackMsg) -> dict[str, object]:
    widgets = message.rerun_script.widget_states.widgets
    return {state.id: getattr(state, str(state.WhichOneof("value"))) for state in widgets}


NO_KINDS = ("empty", "a backend operation without a payload", "install_skills", "dismiss_skills_nudge")
UNADDRESSED = {name: BackMsg() for name in NO_KINDS}
UNADDRESSED["a backend operation without a payload"].backend_operation_request.request_id = "1"
for _payload in ("install_skills", "dismiss_skills_nudge"):
    getattr(UNADDRESSED[_payload].backend_operation_request, _payload).SetInParent()
for _kind in "clear_cache set_run_on_save load_git_info debug_disconnect_websocket debug_shutdown_runtime".split():
    UNADDRESSED[_kind] = BackMsg(**{_kind: True})
TOO_LARGE = {
    "a text of 2 MB": run(text="x" * 2 * MAX),
    "30,000 widgets": run(**{f"w{number}": "" for number in range(30_000)}),
    "100,000 parameters in the address": BackMsg(),
    "addresses for 100,000 files": files("1", 100_000),
    "addresses for 21 files": files("1", 21),
}
TOO_LARGE["100,000 parameters in the address"].rerun_script.query_string = "a&" * 100_000
REFUSED = {name: (message, "not-offered") for name, message in UNADDRESSED.items()}
REFUSED |= {name: (message, "too-large") for name, message in TOO_LARGE.items()}


@pytest.mark.parametrize(("message", "why"), REFUSED.values(), ids=list(REFUSED))
def test_what_does_not_pass(message: BackMsg, why: str) -> None:
    box = mailbox()
    assert put(box, message) == [why]
    assert box.take() is None
    assert not box.page_requested


def test_every_message_of_the_protocol_is_either_offered_or_dropped() -> None:
    """A new version of Streamlit may bring more: somebody has to say what becomes of it."""
    offered = {"rerun_script", "stop_script", "app_heartbeat", "file_urls_request", "backend_operation_request"}
    kinds = {field.name for field in BackMsg.DESCRIPTOR.oneofs_by_name["type"].fields}
    assert kinds == offered | UNADDRESSED.keys() - set(NO_KINDS)


@pytest.mark.parametrize("data", [b"\x5a\xff\xff\xff\xff\x07", bytes(range(256)), b"\xff" * 1000])
def test_no_message(data: bytes) -> None:
    with pytest.raises(ValueError, match="expected a BackMsg"):
        mailbox().put(data)


def test_a_slider_that_is_drawn_leaves_its_last_state_alone_and_no_click_is_lost() -> None:
    box = mailbox()
    put(box, *[run(width=str(number)) for number in range(1000)])
    assert [states(message) for message in taken(box)] == [{"width": "999"}]
    put(box, run(width="1"), click("again"), run(width="2"), click("other"), run(width="3"))
    assert [states(message) for message in taken(box)] == [{"width": "3", "again": "", "other": ""}]


@pytest.mark.parametrize(("fragment", "back"), [("a part", True), ("", False)])
def test_a_part_that_is_requested_right_after_back_leaves_it_a_way_back(fragment: str, back: bool) -> None:
    """A click of the reader's does not: it means the widgets as they are."""
    box, went_back = mailbox(), run(text="typed")
    went_back.rerun_script.is_history_navigation = True
    put(box, went_back, run(fragment, text="typed"))
    (message,) = taken(box)
    assert (message.rerun_script.fragment_id, message.rerun_script.is_history_navigation) == ("", back)


def test_clicks_that_wait_are_no_more_than_a_person_makes_and_no_larger_than_a_message() -> None:
    box = mailbox()
    reasons = put(box, *[click(*[f"{number}-{key}" for key in range(900)]) for number in range(50)])
    assert set(reasons[1:]) == {"too-many-messages"}
    (message,) = taken(box)
    assert len(states(message)) == 900 + 100, "its own, and the last hundred before it"
    reasons = put(box, *[click(str(number), size=MAX // 4) for number in range(20)])
    assert (set(reasons[:3]), set(reasons[4:])) == ({None}, {"too-many-messages"})
    (message,) = taken(box)
    assert MAX // 2 < message.ByteSize() <= MAX


def test_a_request_waits_until_the_run_before_it_has_begun() -> None:
    """What Streamlit gets before, it merges without a bound. What nothing was added to passes as it came."""
    box = mailbox()
    data = run(width="1").SerializeToString() + b"\xf8\x7f\x01"  # a field nobody knows
    box.put(data)
    assert box.take() == data
    put(box, run(width="2"), click("again"))
    assert box.take() is None
    box.sent(run_begins())
    assert [states(message) for message in taken(box)] == [{"again": ""}]


def test_files_are_made_two_at_a_time() -> None:
    box = mailbox()
    put(box, *[download(str(number)) for number in range(5)], BackMsg(app_heartbeat=True))
    kinds = [message.WhichOneof("type") for message in taken(box)]
    assert kinds == ["backend_operation_request", "backend_operation_request", "app_heartbeat"]
    answer = ForwardMsg()
    answer.backend_operation_response.request_id = "1"
    box.sent(ForwardMsg(heartbeat_ack=True).SerializeToString())
    assert box.take() is None
    box.sent(answer.SerializeToString())
    assert [message.backend_operation_request.request_id for message in taken(box)] == ["2"]


def test_no_more_than_a_few_messages_wait() -> None:
    box = mailbox()
    reasons = put(box, *[files(str(number)) for number in range(1000)])
    assert reasons.count("too-many-messages") == 1000 - 32
    assert put(box, run(), run("a"), *[run(str(number)) for number in range(100)]) == [None] * 102
    assert len(taken(box)) == 33


def test_there_is_a_sentence_for_every_reason_and_a_socket_can_be_closed_with_it() -> None:
    sentence = refusals().sentence
    files = [ROOT / "serving/http" / f"{name}.py" for name in ("websocket_gate", "upload_limits", "access")]
    code = "".join(file.read_text("utf-8") for file in (*files, ROOT / "ui/streamlit_internals/mailbox.py"))
    named = set(re.findall(r'"(too-[a-z-]+|no-space|not-offered|foreign-[a-z]+)"', code))
    assert len(named) == 11
    for language in languages():
        scope = {"query_string": f"lang={language}".encode()}
        assert all(sentence(why, scope)[-1] in ".。" for why in named)
        closed = [sentence(why, scope) for why in ("silent", "nonsense", "text")]
        assert all(len(sentence.encode()) <= 123 for sentence in closed)  # RFC 6455, section 5.5
    notice = ForwardMsg.FromString(Mailbox.notice("Not here."))
    assert list(notice.metadata.delta_path) == [RootContainer.EVENT, 0], "where st.toast puts its words"
    assert notice.delta.new_element.toast.body == "Not here."


@pytest.mark.parametrize(
    ("query", "accepted", "language"),
    [
        (b"", b"", "en"),
        (b"", b"fr-CA, fr;q=0.9, pt;q=0.8, en;q=0.5", "pt-BR"),
        (b"t-text=a&lang=zh-TW", b"pt-BR", "zh-TW"),
        (b"lang=klingon&%&;=%ff\xff", b"\xff\xfe,;;q=-1,*", "en"),
        (b"&" * 60_000, b"," * 60_000, "en"),
    ],
)
def test_who_is_turned_away_reads_why_in_a_language_of_theirs(query: bytes, accepted: bytes, language: str) -> None:
    scope = {"type": "http", "query_string": query, "headers": [(b"accept-language", accepted)]}
    expected = load_words("common", language)("refused.too-many-visitors")
    assert refusals().sentence("too-many-visitors", scope) == expected
    page = refusals().page("too-many-visitors", scope)
    assert expected in bytes(page.body).decode()


MESSAGES = st.one_of(
    st.builds(run, st.sampled_from(["", "a", "b"]), st.sampled_from(["x", "y"]), w=st.text(max_size=3)),
    st.builds(click, st.sampled_from(["p", "q", "r"])),
    st.builds(download, st.sampled_from("123")),
    st.builds(files, st.sampled_from("123"), st.integers(0, 30)),
    st.sampled_from(list(UNADDRESSED.values())),
    st.just(BackMsg(stop_script=True)),
)


@given(st.lists(st.one_of(MESSAGES, st.none()), max_size=40))
def test_whatever_comes_in_any_order(sent: list[BackMsg | None]) -> None:
    """None: the server takes all there is. What is shown in the end is what was requested last, and nothing waits."""
    box, got = mailbox(), list[BackMsg]()
    for message in sent:
        if message is None:
            got += taken(box)
        else:
            put(box, message)
    got += taken(box)
    stops = [i for i, m in enumerate(sent) if m is not None and m.WhichOneof("type") == "stop_script"]
    runs = [i for i, m in enumerate(sent) if m is not None and m.WhichOneof("type") == "rerun_script"]
    if runs and (not stops or stops[-1] < runs[-1]):
        last = [message for message in got if message.WhichOneof("type") == "rerun_script"][-1]
        requested = sent[runs[-1]]
        assert requested is not None
        assert states(requested).items() <= states(last).items()
        assert last.rerun_script.page_name == requested.rerun_script.page_name
    assert box.take() is None
