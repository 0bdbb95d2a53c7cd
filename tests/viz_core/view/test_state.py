from dataclasses import replace

import pytest

from tests.viz_core.view.attention_groups import make_group
from viz_core.view.requests import Pin
from viz_core.view.state import DisplayOptions, ViewState, read_message

DEFAULT = ViewState("cross", 1, 2, (Pin("query", 0),))


@pytest.fixture(scope="module")
def groups():
    return (make_group(4, 5),)


def test_a_message_from_the_browser_is_read(groups):
    message = {"group": "cross", "layer": 0, "head": 2, "pins": ["k4", "k1"], "display": {"mode": "links"}, "turn": 7}
    expected = ViewState("cross", 0, 2, (Pin("key", 4), Pin("key", 1)), DisplayOptions(mode="links"))
    assert read_message(message, groups, DEFAULT) == expected
    assert read_message(message | {"pins": []}, groups, DEFAULT) == replace(expected, pins=())


@pytest.mark.parametrize(
    "message",
    [
        *(None, "cross.0.0", {}, [], {"group": "cross"}),
        {"group": "cross", "layer": "0", "head": 0},
        {"group": ["cross"], "layer": 0, "head": 0},
        {"group": "cross", "layer": 0, "head": -1},
        {"group": "cross", "layer": True, "head": 0},
        {"group": "cross", "layer": 0.0, "head": 0},
        {"group": "cross", "layer": 2, "head": 0},
        {"group": "self", "layer": 0, "head": 0},
    ],
)
def test_a_message_that_names_no_head_is_none(groups, message):
    assert read_message(message, groups, DEFAULT) is None


@pytest.mark.parametrize("pins", ["q1", {}, ["v0"], ["k5"], ["q1", "k1"], [["q1"]], ["q1"] * 3 + ["x"], [1]])
def test_a_message_keeps_its_head_where_its_pins_are_gone(groups, pins):
    message = {"group": "cross", "layer": 0, "head": 2, "pins": pins}
    assert read_message(message, groups, DEFAULT) == ViewState("cross", 0, 2)


@pytest.mark.parametrize(
    "display", [3, {"mode": 3}, {"mode": "x"}, {"heads": "9.9"}, {"nothing": "x"}, {"zoom": "<script>"}, {3: "map"}]
)
def test_a_message_keeps_its_head_where_its_look_is_none(groups, display):
    message = {"group": "cross", "layer": 0, "head": 2, "display": display}
    assert read_message(message, groups, DEFAULT) == ViewState("cross", 0, 2)


def test_a_look_that_is_none_is_refused():
    with pytest.raises(ValueError, match="mode: expected map|links, got 'x'"):
        DisplayOptions(mode="x")
