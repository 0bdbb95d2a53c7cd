"""Of what a browser says, what its reader has moved counts: messages as browsers send them, one after the other."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import SessionState

from ui.streamlit_internals.widget_messages import take_what_moved

FIELDS = {"choice": "string_value", "text": "string_value", "click": "trigger_value"}


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch) -> SessionState:
    """With two controls and a button, whose page has run once; its browser has said what they stand at."""
    monkeypatch.setattr(SessionState, "set_widgets_from_proto", SessionState.set_widgets_from_proto)  # and back again
    take_what_moved()
    state = SessionState()
    for key, kind in FIELDS.items():
        each = f"$$ID-0123-{key}"
        state._new_widget_state.set_widget_metadata(WidgetMetadata(each, lambda it: it, lambda it: it, kind))  # type: ignore[arg-type]
        state._set_key_widget_mapping(each, key)
    tell(state, choice="all", text="")
    return state


def tell(window: SessionState, during: Callable[[], None] = lambda: None, **said: str | bool) -> dict[str, object]:
    """What controls stand at in the run that answers a message, and whether the button was pressed."""
    told = WidgetStates(widgets=[WidgetState(id=f"$$ID-0123-{key}", **{FIELDS[key]: it}) for key, it in said.items()])  # type: ignore[arg-type]
    window.on_script_will_rerun(told)
    during()
    return {key: window[key] for key in FIELDS if key in window}


def test_what_a_click_has_set_stays_though_the_next_message_was_sent_before_its_answer_came(
    window: SessionState,
) -> None:
    def button() -> None:
        window["choice"] = "none"

    assert tell(window, button, choice="all", text="", click=True) == {"choice": "none", "text": "", "click": True}
    assert tell(window, choice="all", text="typed") == {"choice": "none", "text": "typed", "click": False}
    assert tell(window, choice="all", text="typed", click=True) == {"choice": "none", "text": "typed", "click": True}
    # The answer has come; and the same button once more is another press.
    assert tell(window, choice="none", text="typed", click=True)["click"] is True
    assert tell(window, choice="some", text="typed")["choice"] == "some"


def test_what_was_set_is_moved_back_by_the_reader(window: SessionState) -> None:
    """A browser says the same again as before the click: nothing else is new in its message, so this is."""

    def button() -> None:
        window["choice"], window["text"] = "none", "set"

    tell(window, button, choice="all", text="", click=True)
    assert tell(window, choice="all", text="set") == {"choice": "all", "text": "set", "click": False}


def test_a_control_that_the_page_lacked_for_a_while_comes_back_as_the_browser_shows_it(window: SessionState) -> None:
    window._compact_state()
    del window._old_state["$$ID-0123-choice"]
    assert tell(window, choice="all", text="typed")["choice"] == "all"
