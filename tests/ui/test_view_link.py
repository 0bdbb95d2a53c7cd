"""Links to a view: its state comes back, and what is malformed gives the default."""

from dataclasses import replace

import pytest

from tests.viz_core.view.attention_groups import make_group
from tests.viz_core.view.test_picture import picture_group
from ui.widgets.view_link import ViewLink, read_link, write_link
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
