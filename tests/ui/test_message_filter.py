"""Requests that are older than the page: browsers as they are, one message after the other."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import SessionState

from tests.ui.streamlit_messages import request, run_begins, run_ends
from ui.streamlit_internals import mailbox as mailboxes
from ui.streamlit_internals.mailbox import Mailbox
from ui.streamlit_internals.message_filter import MessageFilter, has_acted

FIELDS = {"choice": "string_value", "text": "string_value", "click": "trigger_value", "mark": "json_trigger_value"}
FRAGMENTS = {"mark": "a part"}


class Browser:
    """A browser whose page has two controls, a button, and a part with a mark; it has sent what the controls hold."""

    def __init__(self) -> None:
        self.state = SessionState()
        for key, kind in FIELDS.items():
            name = f"$$ID-0123-{key}"
            metadata = WidgetMetadata(name, lambda it: it, lambda it: it, kind, fragment_id=FRAGMENTS.get(key))  # type: ignore[arg-type]
            self.state._new_widget_state.set_widget_metadata(metadata)
            self.state._set_key_widget_mapping(name, key)
        session = SimpleNamespace(session_state=self.state, has_fragment=lambda name: name == "a part")
        self.filter = MessageFilter(lambda name: session if name == "session" else None)  # type: ignore[arg-type,return-value]
        self.filter.sent(run_begins("page"))
        self.sends(choice="all", text="")

    def passes(self, page: str = "page", fragment: str = "", **values: str | bool) -> BackMsg:
        """What becomes of a request."""
        widgets = [WidgetState(id=f"$$ID-0123-{key}", **{FIELDS[key]: it}) for key, it in values.items()]  # type: ignore[arg-type]
        message = request(page, fragment, *widgets)
        assert self.filter.pass_on(message)
        return message

    def sends(self, during: Callable[[], None] = lambda: None, *, ends: bool = True, **values: str | bool) -> object:
        """What the controls hold in the run that answers a request, and whether the button was pressed."""
        self.state.on_script_will_rerun(self.passes(**values).rerun_script.widget_states)  # type: ignore[arg-type]
        self.filter.sent(run_begins("page"))
        during()
        if ends:
            self.filter.sent(run_ends())
        return {key: self.state[key] for key in ("choice", "text", "click") if key in self.state}


@pytest.fixture
def browser() -> Browser:
    return Browser()


@pytest.mark.parametrize("ends", [True, False], ids=["the answer is on its way", "the run is in progress"])
def test_what_a_click_has_set_stays_though_the_next_request_is_older(browser: Browser, ends: bool) -> None:
    def button() -> None:
        browser.state["choice"] = "none"

    expected = {"choice": "none", "text": "", "click": True}
    assert browser.sends(button, ends=ends, choice="all", text="", click=True) == expected
    expected = {"choice": "none", "text": "typed", "click": False}
    assert browser.sends(ends=ends, choice="all", text="typed") == expected
    expected = {"choice": "none", "text": "typed", "click": True}
    assert browser.sends(ends=ends, choice="all", text="typed", click=True) == expected
    # The answer has come; and the same button once more is another press.
    assert browser.sends(choice="none", text="typed", click=True) == expected
    assert browser.sends(choice="some", text="typed") == {"choice": "some", "text": "typed", "click": False}


@pytest.mark.parametrize("ends", [True, False])
def test_what_was_set_is_moved_back_by_the_reader(browser: Browser, ends: bool) -> None:
    """A browser sends the same as before the click: nothing else is new in its request, so this is."""

    def button() -> None:
        browser.state["choice"], browser.state["text"] = "none", "set"

    browser.sends(button, ends=ends, choice="all", text="", click=True)
    assert browser.sends(choice="all", text="set") == {"choice": "all", "text": "set", "click": False}


def test_what_passes_of_a_single_request(browser: Browser) -> None:
    """What is older than a callback is left out before it has run; a forged value is left for its run to refuse."""
    browser.passes(choice="all", text="", click=True)
    (widget,) = browser.passes(choice="all", text="typed").rerun_script.widget_states.widgets
    assert widget.string_value == "typed"
    assert not browser.filter.pass_on(request("page", "a part that was"))
    forged = WidgetState(id="$$ID-0123-choice", json_value="{")
    message = request("page", "", forged)
    assert browser.filter.pass_on(message)
    assert list(message.rerun_script.widget_states.widgets) == [forged]
    # A session forgets, with the page that was left, every widget that the first request for another does not name.
    assert len(browser.passes("another page", choice="all", text="more").rerun_script.widget_states.widgets) == 2


def test_a_value_whose_run_was_replaced_before_it_read_it_is_not_lost(browser: Browser) -> None:
    browser.passes(choice="some", text="")
    assert browser.sends(choice="some", text="typed") == {"choice": "some", "text": "typed"}


@pytest.mark.parametrize(
    ("values", "fragment"),
    [
        ({}, "a part"),
        ({"mark": "1"}, "a part"),
        ({"mark": "1", "text": ""}, "a part"),
        ({"mark": "1", "text": "typed"}, ""),
        ({"text": "typed"}, ""),
        ({"mark": "1", "click": True}, ""),
    ],
)
def test_what_a_control_says_in_the_request_of_a_part_runs_the_whole_page(
    browser: Browser, values: dict[str, str | bool], fragment: str
) -> None:
    assert browser.passes("page", "a part", **values).rerun_script.fragment_id == fragment


PART, HEARTBEAT = request("one", "part"), BackMsg(app_heartbeat=True)


@pytest.mark.parametrize(
    ("sent", "late"),
    [
        pytest.param(
            [request(""), PART, request("two"), PART, request("two", "other")], [3], id="a link while a part asks"
        ),
        pytest.param(
            [request("one"), request("two"), request("one"), PART, HEARTBEAT, request("two", "x")], [5], id="back again"
        ),
        pytest.param([PART, request("two", "other")], [], id="nobody has requested a page"),
    ],
)
def test_only_a_part_of_a_page_that_was_left_is_too_late(sent: list[BackMsg], late: list[int]) -> None:
    box, passed = Mailbox(), []
    for message in sent:
        assert box.put(message.SerializeToString()) is None
        passed.append(box.take())
        box.sent(run_begins())
        box.sent(run_ends())
    assert passed == [None if n in late else message.SerializeToString() for n, message in enumerate(sent)]
    for message in (PART, link := request("two"), PART):  # of requests that wait the last counts
        assert box.put(message.SerializeToString()) is None
    assert (box.take(), box.take()) == (link.SerializeToString(), None)


def test_a_part_waits_no_longer_than_a_few_seconds() -> None:
    now = 0.0
    box = Mailbox(clock=lambda: now)
    box.put(request("one").SerializeToString())
    assert box.take() is not None
    box.put(request("one", "part").SerializeToString())
    for _ in range(3):
        assert box.take() is None
        now += 1
        box.put(request("one", "part").SerializeToString())
    now = mailboxes._LONGEST_WAIT
    assert box.take() is not None
    assert not box.waits


def test_what_only_a_person_changes_counts_as_an_act(browser: Browser) -> None:
    """Not what a browser repeats of the page, nor what a component says of itself, nor a part's own clock."""
    session = SimpleNamespace(session_state=browser.state, has_fragment=lambda _: True)
    browser.filter._find_session = lambda _: session  # type: ignore[assignment,return-value]
    browser.filter.session_id = "someone"
    browser.passes(choice="all", text="")
    browser.passes(fragment="a part", mark="{}")
    assert not has_acted("someone")
    message = request("page", "", WidgetState(id="$$ID-0123-text", string_value="typed"))
    message.rerun_script.is_auto_rerun = True
    assert browser.filter.pass_on(message)
    assert not has_acted("someone")
    browser.passes(choice="none")
    assert has_acted("someone")
    assert not has_acted("somebody else")
