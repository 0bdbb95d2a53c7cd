"""The bytes of a view, and the JavaScript modules that read them."""

import json
import re
import struct
from dataclasses import asdict

import numpy as np
import pytest
import torch
from torch import nn

from benchmarks.view_bytes import decode_view
from tests.viz_core.view.attention_groups import make_group, read_requests
from viz_core.hub.attention import attention_forward
from viz_core.trace import record, record_weights
from viz_core.view.components import COMPONENTS, WORD_NAMES, read_component
from viz_core.view.computed_maps import TILE
from viz_core.view.grouping import group_calls
from viz_core.view.map_group import MapGroup
from viz_core.view.payload import View, encode_view
from viz_core.view.requests import MapRequest, Part, Pin, TokenRequest, in_bytes
from viz_core.view.state import DisplayOptions, ViewState
from viz_core.view.visible_map import panels

WORDS = {name: f"{name}: é {{value}}" for name in WORD_NAMES}
HOSTILE = (
    *("<script>alert(1)</script>", "**md**", "שלום", "👩‍👩‍👧", "x" * 400, "{value}", '"\\', "\x00\n\u2028"),
    *("\ud800", "\u202egnp", "", " "),
)
START = ViewState("cross", 1, 2)


@pytest.fixture
def view():
    return View((make_group(5, 5, "self", layers=1), make_group(5, 7)), WORDS)


@pytest.fixture(scope="module")
def long_view():
    return View((make_group(600, 520, "self", heads=2),), WORDS)


def names(view, state=START, **arguments):
    return set(decode_view(encode_view(view, state, **arguments)).parts)


def test_the_open_group_comes_whole_where_it_is_small(view):
    decoded = decode_view(encode_view(view, START))
    maps = {(layer, head): f"map 0.cross:{layer}.{head}:mean:tokens" for layer in range(2) for head in range(3)}
    assert set(decoded.parts) == {"picture 0 cross 0", "picture 0 cross 1", *maps.values()}
    for (layer, head), name in maps.items():
        assert torch.equal(decoded.parts[name], view.groups[1].calls[layer].weights(head=head)[0])
    assert torch.equal(decoded.parts["picture 0 cross 1"], view.groups[1].picture(1).thumbnails)


@pytest.mark.parametrize(
    ("bytes_", "heads"), [(4 * 35 * 6 - 1, [(1, 0), (1, 1), (1, 2)]), (4 * 35 * 3 - 1, [(1, 2)]), (0, [(1, 2)])]
)
def test_larger_groups_send_the_open_layer_or_head(view, monkeypatch, bytes_, heads):
    monkeypatch.setattr("viz_core.view.responses.EXACT_BYTES", bytes_)
    sent = {name for name in names(view) if name.startswith("map")}
    assert sent == {f"map 0.cross:{layer}.{head}:mean:tokens" for layer, head in heads}


def test_who_knows_the_base_is_sent_only_what_is_asked(view):
    assert len(encode_view(view, START, known=True)) < 600
    want = "map 0.cross:0.0_1.1:max:tokens"
    decoded = decode_view(encode_view(view, START, known=True, wants=read_requests(want, want)))
    assert "base" not in decoded.header
    assert list(decoded.parts) == [want]
    assert torch.equal(decoded.parts[want], view.groups[1].maps.whole(MapRequest(((0, 0), (1, 1)), "max")))


def test_long_maps_come_in_tiles(long_view):
    state = ViewState("self", 0, 1)
    group, name = long_view.groups[0], "0.self:0.1:mean:tokens"
    assert not any(part.startswith("map") for part in names(long_view, state))
    wants = [f"tile {name} 0 0 9 8", f"tile {name} 2 2 1 0", f"map {name}"]
    decoded = decode_view(encode_view(long_view, state, known=True, wants=read_requests(*wants)))
    exact, pooled = decoded.parts[wants[0]], decoded.parts[wants[1]]
    assert torch.equal(exact, group.calls[0].weights(head=1)[0][9 * TILE :, 8 * TILE :])
    rows, columns = range(4 * TILE, 8 * TILE), range(4 * TILE)
    assert torch.equal(pooled, in_bytes(group.maps.cells(MapRequest(((0, 1),)), rows, columns, (4, 4))))
    assert decoded.header["missing"] == [wants[2]]


@pytest.mark.attack("exports")
@pytest.mark.parametrize(
    "want",
    [
        *("", "page", "picture 0 cross 2", "picture 1 cross 0", "picture 0 ../x 0", "picture 0 cross 00000", "map"),
        *("map 0.cross:9.9:mean:tokens", "map 0.absent:0.0:mean:tokens", "map 1.cross:0.0:mean:tokens"),
        *("tile 0.cross:0.0:mean:tokens 0 0 1 0", "tile 0.cross:0.0:mean:tokens 99 0 0 0"),
        *("tile 0.cross:0.9:mean:tokens 0 0 0 0", "x" * 10_000, "map " + "0." * 5000),
    ],
)
def test_what_cannot_be_had_is_named(view, want):
    assert decode_view(encode_view(view, START, known=True, wants=read_requests(want))).header["missing"] == [want]


@pytest.mark.attack("exports")
def test_one_message_is_answered_only_so_much(view):
    wants = read_requests(*(f"tile x {i}" for i in range(100)))
    assert len(decode_view(encode_view(view, START, known=True, wants=wants)).header["missing"]) == 64


def test_every_part_starts_at_a_multiple_of_four(view):
    for words in (WORDS | {"heads": "x" * n} for n in range(4)):
        data = encode_view(View(view.groups, words), START)
        (length,) = struct.unpack_from("<I", data)
        header = json.loads(data[4 : 4 + length])
        assert (4 + length) % 4 == 0
        assert all(part["offset"] % 4 == 0 for part in header["parts"])


def test_the_header_says_what_is_open_and_what_things_are_called(view):
    state = ViewState("cross", 1, 2, (Pin("query", 3),), DisplayOptions(mode="links"))
    header = decode_view(encode_view(View(view.groups, WORDS, language="pt"), state, turn=7)).header
    assert header["state"] == {
        **{"group": "cross", "layer": 1, "head": 2, "pins": ["q3"]},
        "display": asdict(DisplayOptions()) | {"mode": "links"},
    }
    base, group = header["base"], header["base"]["groups"][0][1]
    assert (header["version"], header["turn"], base["language"], header["offline"]) == (3, 7, "pt", False)
    assert (base["words"], group["queries_label"], group["exact"]) == (WORDS, "French", True)
    assert (group["query_tokens"], [layer["number"] for layer in group["layers"]]) == (
        [f"q{i}" for i in range(5)],
        [1, 2],
    )


@pytest.mark.attack("exports")
def test_hostile_tokens_arrive_as_they_are():
    n = len(HOSTILE)
    with record() as trace:
        record_weights(torch.eye(n)[None, None], "encoder.0.self")
    group = MapGroup("self", "<b>", "</script>", "&amp;", HOSTILE, HOSTILE, tuple(trace))
    base = decode_view(encode_view(View([group], WORDS), ViewState("self", 0, 0))).header["base"]
    assert base["groups"][0][0]["query_tokens"] == list(HOSTILE)
    assert base["groups"][0][0]["label"] == "<b>"


def test_weights_that_are_no_numbers_do_not_break_the_header():
    with record() as trace:
        record_weights(torch.full((1, 1, 2, 2), torch.nan), "encoder.0.self")
    group = MapGroup("self", "Self", "a", "b", ("x", "y"), ("x", "y"), tuple(trace))
    decoded = decode_view(encode_view(View([group], WORDS), ViewState("self", 0, 0)))
    measures = decoded.header["parts"][0]["measures"][0]
    assert measures["entropy"] is None
    assert decoded.parts["picture 0 self 0"].sum() == 0


@pytest.mark.parametrize(("head", "pins"), [(3, ()), (0, (Pin("query", 5),)), (0, (Pin("key", 1), Pin("query", 1)))])
def test_a_state_that_the_groups_do_not_have_is_refused(view, head, pins):
    with pytest.raises(ValueError, match="state: expected a head and tokens of the groups self, cross"):
        encode_view(view, ViewState("cross", 0, head, pins))


def test_maps_whose_tokens_are_cut_otherwise_are_never_subtracted():
    one, other = make_group(3, 3, "self"), make_group(3, 3, "self")
    for beside in ((), ("self",)):
        view = View((one,), WORDS, (other,), ("a", "b"), beside=beside)
        state = ViewState("self", 0, 0, display=DisplayOptions(compare="difference", other="1.0.0"))
        assert [panel.signed for panel in panels(view, state)] == [not beside]
        assert decode_view(encode_view(view, state)).header["base"]["beside"] == list(beside)


def test_heads_change_over_tokens_that_stand_for_each_other():
    one, other = make_group(2, 3, query_tokens=("a", "b")), make_group(3, 3, query_tokens=("x", "a", "b"))
    view = View([one], WORDS, [other], ("a", "b"))
    decoded = decode_view(encode_view(view, START, wants=read_requests("change 0 cross 0")))
    (found,) = (part["changes"] for part in decoded.header["parts"] if part["name"] == "change 0 cross 0")
    own, theirs = (group.calls[0].weights()[0] for group in (one, other))
    expected = (own - theirs[:, 1:]).abs().sum(dim=-1).mean(dim=-1) / 2
    assert found == pytest.approx(expected.tolist(), abs=1e-6)


ENTRIES = [f"{path.parent.name}/main.js" for path in sorted(COMPONENTS.glob("*/main.js"))]


@pytest.mark.parametrize("entry", [*ENTRIES, "attention_view/widget.js"])
def test_a_component_is_one_script_that_a_page_can_hold(entry: str) -> None:
    name, _, file = entry.partition("/")
    show = read_component(name, file).show
    assert not re.search(r"</script|<!--|^(?:import|export)\b", show, re.MULTILINE)
    assert show.endswith(f'modules["{entry}"].default;\n}})()')


def test_keys_that_a_query_did_not_choose_carry_a_sign() -> None:
    query, key = torch.randn(1, 2, 3, 8), torch.randn(1, 2, 4, 8)
    mask = torch.tensor([[1, 0, 1, 0], [0, 1, 1, 0], [1, 0, 0, 1]]).bool()
    indices = torch.tensor([[[0, 2], [1, 2], [3, 0]]])
    with record() as trace:
        attention_forward(nn.Identity(), query, key, key, mask.new_ones(1, 1, 3, 4), indices=indices)
    (group,) = group_calls(list(trace))
    skipped = (~mask & torch.ones(3, 4).tril(1).bool()).numpy()
    part, row = group.maps.parts([MapRequest(((0, 1),)), TokenRequest(0, Pin("query", 1))])
    assert isinstance(part, Part)
    assert isinstance(row, Part)
    assert np.array_equal(np.signbit(part.array), skipped)
    assert np.array_equal(np.signbit(row.array[1]), skipped[1])
