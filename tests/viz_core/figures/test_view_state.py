from dataclasses import replace

import pytest
import torch

from viz_core.figures.map_group import MapGroup
from viz_core.figures.view_state import Pin, ViewState, read_link, read_message, write_link
from viz_core.trace import record, record_weights

DEFAULT = ViewState("cross", 1, 2, Pin("query", 0))


@pytest.fixture(scope="module")
def groups():
    with record() as trace:
        for layer in range(2):
            record_weights(torch.full((1, 3, 4, 5), 0.2), f"decoder.{layer}.cross")
    return (MapGroup("cross", "Cross", "French", "English", tuple("abcd"), tuple("vwxyz"), tuple(trace)),)


@pytest.mark.parametrize(
    "state",
    [
        DEFAULT,
        replace(DEFAULT, pin=None),
        replace(DEFAULT, pin=Pin("key", 4)),
        ViewState("cross", 0, 0),
        ViewState("cross", 0, 1, Pin("query", 3)),
    ],
)
def test_a_link_brings_its_state_back(groups, state):
    assert read_link(*write_link(state, DEFAULT), groups, DEFAULT) == (state, True)


def test_links_say_head_and_pin_and_nothing_for_the_default():
    assert write_link(ViewState("cross", 0, 1, Pin("query", 3)), DEFAULT) == ("cross.0.1", "q3")
    assert write_link(DEFAULT, DEFAULT) == (None, None)


@pytest.mark.parametrize(
    "head",
    [
        *("", "cross", "cross.1", "cross.1.2.3", "cross.2.0", "cross.0.3", "cross.-1.0", "self.0.0", "Cross.0.0"),
        *("<script>", "cross.0.0\n", "cross.٠.٠", "../../etc", "cross.1e0.0", "cross.99999999999999999999.0"),
    ],
)
def test_hostile_and_absent_heads_give_the_default_and_say_so(groups, head):
    assert read_link(head, None, groups, DEFAULT) == (DEFAULT, False)


@pytest.mark.parametrize("pin", ["", "q", "q4", "k5", "v0", "q-1", "q٣", "<b>", "q1 ", "q9999999"])
def test_a_bad_pin_leaves_the_head_and_says_so(groups, pin):
    assert read_link("cross.0.1", pin, groups, DEFAULT) == (ViewState("cross", 0, 1), False)


def test_a_pin_alone_pins_on_the_default_head(groups):
    assert read_link(None, "k3", groups, DEFAULT) == (replace(DEFAULT, pin=Pin("key", 3)), True)


def test_a_message_from_the_browser_is_read(groups):
    message = {"group": "cross", "layer": 0, "head": 2, "pin": {"axis": "key", "index": 4}, "turn": 7}
    assert read_message(message, groups) == ViewState("cross", 0, 2, Pin("key", 4))
    assert read_message(message | {"pin": None}, groups) == ViewState("cross", 0, 2)


@pytest.mark.parametrize(
    "message",
    [
        None,
        "cross.0.0",
        {},
        {"group": ["cross"], "layer": 0, "head": 0},
        {"group": "cross", "layer": "0", "head": 0},
        {"group": "cross", "layer": True, "head": 0},
        {"group": "cross", "layer": 0.0, "head": 0},
        {"group": "cross", "layer": 2, "head": 0},
        {"group": "self", "layer": 0, "head": 0},
    ],
)
def test_a_message_that_names_no_head_is_none(groups, message):
    assert read_message(message, groups) is None


@pytest.mark.parametrize(
    "pin",
    ["q1", {}, {"axis": "query"}, {"axis": "value", "index": 0}, {"axis": "key", "index": 5}, {"axis": [], "index": 0}],
)
def test_a_message_keeps_its_head_where_its_pin_is_gone(groups, pin):
    message = {"group": "cross", "layer": 0, "head": 2, "pin": pin}
    assert read_message(message, groups) == ViewState("cross", 0, 2)
