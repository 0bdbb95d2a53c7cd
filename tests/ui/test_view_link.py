"""The attention view's state in the URL, its clicked cell and its open map."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.viz_core.view.attention_groups import make_group
from tests.viz_core.view.test_shipped import picture_group
from ui.widgets.attention_view import LastAction, is_newer
from ui.widgets.view_link import Cell, ViewLink, open_map, open_tokens, read_cell, read_link, write_link
from viz_core.view.requests import Pin
from viz_core.view.state import DisplayOptions, ViewState

DEFAULT = ViewState("cross", 1, 2, (Pin("query", 0),))


@pytest.fixture(scope="module")
def groups():
    return (make_group(4, 5),)


@pytest.mark.parametrize(
    "state",
    [
        DEFAULT,
        replace(DEFAULT, pins=()),
        replace(DEFAULT, pins=(Pin("key", 4), Pin("key", 0))),
        ViewState("cross", 0, 0),
        ViewState("cross", 0, 1, (Pin("query", 3),)),
        replace(DEFAULT, display=DisplayOptions(mode="links", links="k3", filter="entropy < 1.5, layer > -2")),
        ViewState(
            "cross",
            0,
            1,
            display=DisplayOptions(heads="0.1_1.2", how="max", zoom="0.1.2.3", compare="side", other="1.0.2"),
        ),
    ],
)
def test_a_link_brings_its_state_back(groups, state):
    assert read_link(write_link(state, DEFAULT), groups, DEFAULT) == (state, True)


def test_links_say_what_differs_from_the_default():
    state = ViewState("cross", 0, 1, (Pin("query", 3), Pin("query", 1)), DisplayOptions(scale="log", sort="entropy"))
    assert write_link(state, DEFAULT) == ViewLink("cross.0.1", "q3.q1", "scale-log~sort-entropy")
    assert write_link(replace(DEFAULT, display=DisplayOptions(mode="links")), DEFAULT) == ViewLink(
        None, None, "mode-links"
    )
    assert write_link(DEFAULT, DEFAULT) == ViewLink()


@pytest.mark.parametrize(
    "head",
    [
        *("", "cross", "cross.1", "cross.1.2.3", "cross.2.0", "cross.0.3", "cross.-1.0", "self.0.0", "Cross.0.0"),
        *("<script>", "cross.0.0\n", "cross.٠.٠", "../../etc", "cross.1e0.0", "cross.99999999999999999999.0"),
    ],
)
def test_hostile_and_absent_heads_give_the_default_and_say_so(groups, head):
    assert read_link(ViewLink(head), groups, DEFAULT) == (DEFAULT, False)


@pytest.mark.parametrize(
    "pin", ["", "q", "q4", "k5", "v0", "q-1", "q٣", "<b>", "q1 ", "q9999999", "q1.k1", "q1.", ".".join(["q1", "q9"])]
)
def test_a_bad_pin_leaves_the_head_and_says_so(groups, pin):
    assert read_link(ViewLink("cross.0.1", pin), groups, DEFAULT) == (ViewState("cross", 0, 1), False)


@pytest.mark.parametrize(
    "display",
    [
        *("", "x", "mode-pictures", "mode-links~", "heads-5.5", "other-7.1.1", "zoom-1", "zoom-1.2.3.-4", "sort-<b>"),
        *("filter-" + "a" * 41, "mode-links\n", "unknown-links", "links-w2", "links-k999", "heads-" + "0.1_" * 99),
    ],
)
def test_a_bad_look_is_told_unless_it_is_good_in_part(groups, display):
    state, understood = read_link(ViewLink(display=display), groups, DEFAULT)
    assert state.display in (DisplayOptions(), DisplayOptions(mode="links"))
    assert understood == (display == "mode-links~")
    assert state.pins == DEFAULT.pins


def test_a_pin_alone_pins_on_the_default_head(groups):
    assert read_link(ViewLink(pin="k3"), groups, DEFAULT) == (replace(DEFAULT, pins=(Pin("key", 3),)), True)


def test_only_groups_with_a_picture_are_opened_over_one():
    groups, plain = (picture_group(), make_group(2, 3)), ViewState("self", 0, 0)
    assert read_link(ViewLink(display="mode-picture~patches-smooth"), groups, plain)[0].display.patches == "smooth"
    requested = ViewLink(head="cross.0.0", display="mode-picture")
    assert read_link(requested, groups, plain) == (ViewState("cross", 0, 0), False)
    assert read_link(ViewLink(display="patches-blurred"), groups, plain)[1] is False


def test_a_cell_that_was_clicked_is_read():
    groups = (make_group(4, 5),)
    cell = {"id": "a.1", "group": "cross", "query": 3, "key": 4}
    assert read_cell({"group": "cross", "cell": cell}, groups) == Cell("a.1", "cross", 3, 4)
    hostile = [{"query": 4}, {"key": 5}, {"key": -1}, {"key": True}, {"id": 3}, {"group": "self"}, {"group": ["cross"]}]
    for message in (None, [], {}, {"cell": None}, {"cell": "q3"}, *({"cell": cell | each} for each in hostile)):
        assert read_cell(message, groups) is None


def test_an_opened_map_is_the_librarys() -> None:
    groups, view = (make_group(3, 3, "self"), make_group(4, 5)), ViewState("cross", 1, 2)
    torch.testing.assert_close(open_map(groups, view), groups[1].calls[1].weights(head=2)[0])
    assert open_tokens(groups, view) == {"rows": groups[1].query_tokens, "columns": groups[1].key_tokens}


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
