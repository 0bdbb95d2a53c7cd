"""The attention view's state in the address, and the bytes of a walk."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.viz_core.view.attention_groups import make_group
from ui.text.words import load_words
from ui.widgets.attention_view import LastAction, is_newer
from ui.widgets.view_link import Cell, ViewLink, read_cell, read_link, write_link
from ui.widgets.walk import encode_walk
from viz_core.hub import load_hub
from viz_core.lab.walk import walk_picture, walk_translation, walk_writing
from viz_core.lab.walk_records import Walk
from viz_core.pretrained import load
from viz_core.pretrained.samples import drawn_picture
from viz_core.view.components import unframe
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
    links = replace(DEFAULT, display=DisplayOptions(mode="links"))
    assert write_link(links, DEFAULT) == ViewLink(None, None, "mode-links")
    assert write_link(DEFAULT, DEFAULT) == ViewLink()


BAD_HEADS = (
    *("", "cross", "cross.1", "cross.1.2.3", "cross.2.0", "cross.0.3", "cross.-1.0", "self.0.0", "Cross.0.0"),
    *("<script>", "cross.0.0\n", "cross.٠.٠", "../../etc", "cross.1e0.0", "cross.99999999999999999999.0"),
)
BAD_PINS = ("", "q", "q4", "k5", "v0", "q-1", "q٣", "<b>", "q1 ", "q9999999", "q1.k1", "q1.", "q1.q9")
BAD_DISPLAYS = (
    *("", "x", "mode-pictures", "heads-5.5", "other-7.1.1", "zoom-1", "zoom-1.2.3.-4", "sort-<b>", "unknown-links"),
    *("filter-" + "a" * 41, "mode-links\n", "links-w2", "links-k999", "heads-" + "0.1_" * 99, "patches-blurred"),
)


@pytest.mark.parametrize(
    ("link", "state", "understood"),
    [
        *((ViewLink(head), DEFAULT, False) for head in BAD_HEADS),
        *((ViewLink("cross.0.1", pin), ViewState("cross", 0, 1), False) for pin in BAD_PINS),
        *((ViewLink(display=display), DEFAULT, False) for display in BAD_DISPLAYS),
        (ViewLink(display="mode-links~"), replace(DEFAULT, display=DisplayOptions(mode="links")), True),
        (ViewLink(pin="k3"), replace(DEFAULT, pins=(Pin("key", 3),)), True),
    ],
)
def test_a_link_of_anyone_gives_what_is_good_in_it_and_says_so(groups, link, state, understood):
    assert read_link(link, groups, DEFAULT) == (state, understood)


def test_a_cell_that_was_clicked_is_read():
    groups = (make_group(4, 5),)
    cell = {"id": "a.1", "group": "cross", "query": 3, "key": 4}
    assert read_cell({"group": "cross", "cell": cell}, groups) == Cell("a.1", "cross", 3, 4)
    hostile = [{"query": 4}, {"key": 5}, {"key": -1}, {"key": True}, {"id": 3}, {"group": "self"}, {"group": ["cross"]}]
    for message in (None, [], {}, {"cell": None}, {"cell": "q3"}, *({"cell": cell | each} for each in hostile)):
        assert read_cell(message, groups) is None


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
        pytest.param({"turn": 0}, True, START, PIN, False, id="asks after the page was made anew"),
        pytest.param({"turn": "2"}, True, START, PIN, False, id="nonsense"),
    ],
)
def test_what_counts(message: object, fresh: bool, link: ViewLink, last: LastAction, expected: bool) -> None:
    assert is_newer(message, fresh, link, last) is expected


MAX_BYTES = 300_000
TYPES = {"f4": np.float32, "f2": np.float16, "u1": np.uint8, "i1": np.int8}


@cache
def walk_of(kind: str) -> Walk:
    if kind == "writer":
        return walk_writing(load_hub("writer-en", offline=True), "The little girl")
    if kind == "translator":
        return walk_translation(load("transformer-en-fr"), "The black cat is sleeping on my bed.")
    return walk_picture(load("vit-fashion-mnist"), drawn_picture("ankle-boot"))


def encoded(kind: str, block: tuple[int, int]) -> bytes:
    words = load_words("walk", "en").group("view")
    return encode_walk(
        walk_of(kind), key="k", kind=kind, block=block, edits=(), before=None, words=words, links={}, language="en"
    )


def array(data: bytes, start: int, described: dict[str, Any]) -> np.ndarray:
    count = int(np.prod(described["shape"]))
    found = np.frombuffer(data, TYPES[described["type"]], count, start + described["offset"]).astype(np.float32)
    if described["type"] == "i1":
        found = found * np.float32(described["scale"] / 127)
    return found.reshape(described["shape"])


def tolerance(described: dict[str, Any], values: np.ndarray) -> float:
    largest = float(np.abs(values).max()) or 1.0
    return {"f4": 1e-7, "f2": 1e-3, "u1": 0.0, "i1": 0.51 / 127}[described["type"]] * largest


@pytest.mark.parametrize("kind", ["writer", "translator", "picture"])
def test_every_number_sent_is_that_of_the_walk_and_what_is_sent_is_small(kind: str) -> None:
    walk = walk_of(kind)
    for s, stack in enumerate(walk.stacks):
        for b, block in enumerate(stack.blocks):
            header, start = unframe(data := encoded(kind, (s, b)))
            assert len(data) <= MAX_BYTES
            assert header["block"] == [s, b]
            pairs = [(header[name], getattr(block, name)) for name in ("input", "neurons", "ffn", "output")]
            pairs.append((header["stacks"][s]["embedded"], stack.embedded))
            if stack.positions is not None:
                pairs.append((header["stacks"][s]["positions"], stack.positions))
            for described, call in zip(header["attentions"], block.attentions, strict=True):
                assert [described[each] for each in ("site", "heads", "rows")] == [call.site, *call.weights.shape[:2]]
                names = "queries keys values scores weights outputs joined added state allowed".split()
                pairs += [(described[name], getattr(call, name)) for name in names]
            for described, values in pairs:
                exact = values.astype(np.float32)
                assert np.abs(array(data, start, described) - exact).max() <= tolerance(described, exact)
