from dataclasses import replace

import pytest

from tests.viz_core.view.attention_groups import make_group
from viz_core.view.link import ViewLink, read_link, write_link
from viz_core.view.pins import Pin
from viz_core.view.state import Cell, DisplayOptions, ViewState, read_cell, read_message

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


def test_a_cell_that_was_clicked_is_read(groups):
    cell = {"id": "a.1", "group": "cross", "query": 3, "key": 4}
    assert read_cell({"group": "cross", "cell": cell}, groups) == Cell("a.1", "cross", 3, 4)
    hostile = [{"query": 4}, {"key": 5}, {"key": -1}, {"key": True}, {"id": 3}, {"group": "self"}, {"group": ["cross"]}]
    for message in (None, [], {}, {"cell": None}, {"cell": "q3"}, *({"cell": cell | each} for each in hostile)):
        assert read_cell(message, groups) is None


def test_a_look_that_is_none_is_refused():
    with pytest.raises(ValueError, match="mode: expected map|links, got 'x'"):
        DisplayOptions(mode="x")
