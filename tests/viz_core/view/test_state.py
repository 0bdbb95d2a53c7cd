"""What is open: read from messages of a browser, and read and set from Python by site, head and pins."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.viz_core.view.attention_groups import make_group
from viz_core.trace import AttentionCall
from viz_core.view.map_group import MapGroup
from viz_core.view.notebook import AttentionView
from viz_core.view.requests import Pin
from viz_core.view.state import DisplayOptions, ViewState, read_message, reopened, site_of_state

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


def renamed(group: MapGroup, kind: str, heads: int) -> MapGroup:
    """The group with sites of its own: "decoder.LAYER.KIND"."""
    calls = tuple(AttentionCall(f"decoder.{layer}.{kind}", call.source) for layer, call in enumerate(group.calls))
    return MapGroup(group.id, group.label, "French", "English", group.query_tokens, group.key_tokens, calls)


GROUPS = (renamed(make_group(5, 5, "self", heads=4), "self", 4), renamed(make_group(5, 7, heads=2), "cross", 2))
START = ViewState("self", 0, 3, (Pin("query", 1),), DisplayOptions(palette="magma", zoom="0.0.2.2"))


def test_another_layer_keeps_head_and_pins() -> None:
    found = reopened(GROUPS, START, site="decoder.1.self")
    assert found == ViewState("self", 1, 3, (Pin("query", 1),), START.display)
    assert site_of_state(GROUPS, found) == "decoder.1.self"


def test_another_kind_of_map_keeps_how_one_looks_but_not_where() -> None:
    found = reopened(GROUPS, START, site="decoder.1.cross", head=1)
    assert found == ViewState("cross", 1, 1, (), DisplayOptions(palette="magma"))


def test_pins_and_look_change_by_themselves() -> None:
    assert reopened(GROUPS, START, pins=["k0", "k4"]).pins == (Pin("key", 0), Pin("key", 4))
    assert reopened(GROUPS, START, pins="q4").pins == (Pin("query", 4),)
    assert reopened(GROUPS, START, pins=()).pins == ()
    assert reopened(GROUPS, START, display={"mode": "links"}).display == DisplayOptions(
        "links", palette="magma", zoom="0.0.2.2"
    )
    assert reopened(GROUPS, START, display=DisplayOptions()).display == DisplayOptions()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"site": "decoder.2.self"}, "site: expected one of decoder.0.self, .*decoder.1.cross, got 'decoder.2.self'"),
        ({"site": "decoder.0.cross"}, "head: expected 0 to 1 of decoder.0.cross, got 3"),
        ({"head": 4}, "head: expected 0 to 3 of decoder.0.self, got 4"),
        ({"head": -1}, "head: expected 0 to 3 of decoder.0.self, got -1"),
        ({"head": True}, "head: expected 0 to 3 of decoder.0.self, got True"),
        ({"pins": 3}, "pins: expected 'q0' to 'q4', .*got 3"),
        ({"display": {"scale": 3}}, "scale: expected sqrt.linear.log, got '3'"),
        ({"display": "log"}, "display: expected DisplayOptions or some of its fields, as {'scale': 'log'}, got 'log'"),
        ({"pins": ["q5"]}, "pins: expected 'q0' to 'q4', or 'k0' to 'k4', all on one side, got \\['q5'\\]"),
        ({"pins": ["q0", "k0"]}, "all on one side"),
        ({"pins": "third"}, "got 'third'"),
        ({"pins": ["q0"] * 2 + [f"q{i}" for i in range(100)]}, "pins: expected"),
        ({"display": {"mode": "upside down"}}, "mode: expected map"),
        ({"display": {"colour": "red"}}, "display: expected some of mode, .*, got colour"),
        ({"display": {"mode": "picture"}}, "display: expected one of heads that there are"),
        ({"display": {"heads": "5.5"}}, "display: expected one of heads that there are"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        reopened(GROUPS, START, **change)


def test_a_frame_is_read_and_set_like_a_widget() -> None:
    view = AttentionView(GROUPS, START)
    assert (view.site, view.head, view.pins) == ("decoder.0.self", 3, ("q1",))
    view.site, view.head, view.pins = "decoder.1.self", 2, ["q3", "q4"]
    view.display = {"scale": "log"}
    assert view.state == ViewState(
        "self", 1, 2, (Pin("query", 3), Pin("query", 4)), DisplayOptions("map", "log", "magma", zoom="0.0.2.2")
    )
    with pytest.raises(ValueError, match="head: expected 0 to 3"):
        view.head = 9
    assert (view.head, view.pins) == (2, ("q3", "q4"))
    view.open_head("decoder.0.cross", 0, "k6")
    assert (view.site, view.head, view.pins) == ("decoder.0.cross", 0, ("k6",))
    assert repr(view) == "AttentionView(decoder.0.cross, head 0, one of 12)"
