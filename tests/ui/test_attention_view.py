"""What counts where the browser and the address say different things: the reader's last move, or the history."""

from __future__ import annotations

import pytest

from ui.widgets.attention_view import LastAction, is_newer
from ui.widgets.view_link import ViewLink

START, PINNED = ViewLink(None, None, None), ViewLink(None, "q7", None)
PIN = LastAction(1, PINNED)  # the reader pinned a token at the first turn


@pytest.mark.parametrize(
    ("message", "fresh", "link", "last", "expected"),
    [
        pytest.param(None, False, START, LastAction(), False, id="first run: the address"),
        pytest.param({"turn": 1}, True, START, LastAction(), True, id="the reader moves"),
        pytest.param({"turn": 2}, True, START, PIN, True, id="and again, before the first address has arrived"),
        pytest.param({"turn": 1}, True, START, PIN, True, id="asks for maps, before the address has arrived"),
        pytest.param({"turn": 1}, True, PINNED, PIN, False, id="asks for maps, the address has arrived"),
        pytest.param(
            {"turn": 1}, True, ViewLink("self.1.1", None, None), PIN, True, id="asks, with an older address yet"
        ),
        pytest.param({"turn": 1}, False, START, PIN, False, id="goes back: the address, no fresh message"),
        pytest.param({"turn": 1}, False, PINNED, PIN, False, id="moves something else on the page"),
        pytest.param({"turn": 0}, True, START, PIN, False, id="asks after the page was made anew"),
        pytest.param({"turn": "2"}, True, START, PIN, False, id="nonsense"),
        pytest.param([], True, START, PIN, False, id="other nonsense"),
    ],
)
def test_what_counts(message: object, fresh: bool, link: ViewLink, last: LastAction, expected: bool) -> None:
    assert is_newer(message, fresh, link, last) is expected
