import json
import struct
from dataclasses import replace

import pytest
import torch

from viz_core.figures.attention_payload import WORD_NAMES, MapGroup, Pin, ViewState, decode_view, encode_view
from viz_core.trace import attend, record, record_weights

WORDS = {name: f"{name}: é {{value}}" for name in WORD_NAMES}
HOSTILE = (
    *("<script>alert(1)</script>", "**md**", "שלום", "👩‍👩‍👧", "x" * 400, "{value}", '"\\', "\x00\n\u2028"),
    *("\ud800", "\u202egnp", "", " "),
)


def make_group(num_queries, num_keys, name="cross", layers=2, heads=3):
    torch.manual_seed(num_queries)
    with record() as trace:
        for layer in range(layers):
            queries, keys = torch.randn(1, heads, num_queries, 8), torch.randn(1, heads, num_keys, 8)
            attend(queries, keys, keys, site=f"decoder.{layer}.{name}")
    queries, keys = (tuple(f"{axis}{i}" for i in range(n)) for axis, n in (("q", num_queries), ("k", num_keys)))
    return MapGroup(name, name.title(), "French", "English", queries, keys, tuple(trace))


@pytest.fixture(scope="module")
def groups():
    return make_group(5, 5, "self", layers=1), make_group(5, 7), make_group(70, 66, "long", heads=2)


def test_every_head_of_every_group_has_its_thumbnail(groups):
    view = decode_view(encode_view(groups, ViewState("cross", 1, 2), WORDS))
    assert len(view.thumbnails) == 1 + 2 + 2
    for group in groups:
        for layer, call in enumerate(group.calls):
            overview = call.overview(64)[0]
            torch.testing.assert_close(view.thumbnails[group.id, layer] / 255, overview, atol=0.5 / 255 + 1e-6, rtol=0)


def test_small_groups_send_all_their_heads_exactly(groups):
    view = decode_view(encode_view(groups, ViewState("cross", 1, 2), WORDS))
    assert set(view.maps) == {("cross", layer, head) for layer in range(2) for head in range(3)}
    for (_, layer, head), weights in view.maps.items():
        assert torch.equal(weights, groups[1].calls[layer].weights(head=head)[0])


def test_larger_groups_send_the_open_head_exactly(groups, monkeypatch):
    monkeypatch.setattr("viz_core.figures.attention_payload.EXACT_BYTES", 4 * 2 * 3 * 5 * 7 - 1)
    view = decode_view(encode_view(groups, ViewState("cross", 1, 2), WORDS))
    assert set(view.maps) == {("cross", 1, 2)}
    assert torch.equal(view.maps["cross", 1, 2], groups[1].calls[1].weights(head=2)[0])


def test_long_groups_are_overviews_without_exact_maps(groups, monkeypatch):
    monkeypatch.setattr("viz_core.figures.attention_payload.EXACT_TOKENS", 69)
    view = decode_view(encode_view(groups, ViewState("long", 0, 1), WORDS))
    assert view.maps == {}
    assert [group["overview"] for group in view.header["groups"]] == [False, False, True]


def test_every_section_starts_at_a_multiple_of_four(groups):
    for words in (WORDS | {"heads": "x" * n} for n in range(4)):
        data = encode_view(groups, ViewState("cross", 0, 0), words)
        (length,) = struct.unpack_from("<I", data)
        header = json.loads(data[4 : 4 + length])
        layers = [layer["thumbnails"] for group in header["groups"] for layer in group["layers"]]
        assert (4 + length) % 4 == 0
        assert all(place["offset"] % 4 == 0 for place in layers + header["maps"])


def test_the_header_says_what_is_open_and_what_things_are_called(groups):
    state = ViewState("cross", 1, 2, Pin("query", 3))
    header = decode_view(encode_view(groups, state, WORDS, turn=7, language="pt")).header
    assert header["view"] == {"group": "cross", "layer": 1, "head": 2, "pin": {"axis": "query", "index": 3}}
    assert (header["version"], header["turn"], header["language"], header["tiles"]) == (1, 7, "pt", [])
    assert header["words"] == WORDS
    assert header["groups"][1]["queries_label"] == "French"
    assert [layer["number"] for layer in header["groups"][1]["layers"]] == [1, 2]
    assert header["groups"][1]["query_tokens"] == ["q0", "q1", "q2", "q3", "q4"]


def test_stats_are_the_measures_of_each_head(groups):
    header = decode_view(encode_view(groups, ViewState("cross", 0, 0), WORDS)).header
    square, oblong = header["groups"][0]["layers"][0]["stats"], header["groups"][1]["layers"][0]["stats"]
    assert [head["entropy"] for head in oblong] == pytest.approx(groups[1].pictures[0].entropy, abs=1e-6)
    assert [head["diagonal"] for head in oblong] == [None, None, None]
    assert [head["diagonal"] for head in square] == pytest.approx(groups[0].pictures[0].diagonal, abs=1e-6)


def test_hostile_tokens_arrive_as_they_are():
    n = len(HOSTILE)
    with record() as trace:
        record_weights(torch.eye(n)[None, None], "encoder.0.self")
    group = MapGroup("self", "<b>", "</script>", "&amp;", HOSTILE, HOSTILE, tuple(trace))
    header = decode_view(encode_view([group], ViewState("self", 0, 0), WORDS)).header
    assert header["groups"][0]["query_tokens"] == list(HOSTILE)
    assert header["groups"][0]["label"] == "<b>"


def test_weights_that_are_no_numbers_do_not_break_the_header():
    with record() as trace:
        record_weights(torch.full((1, 1, 2, 2), torch.nan), "encoder.0.self")
    group = MapGroup("self", "Self", "a", "b", ("x", "y"), ("x", "y"), tuple(trace))
    view = decode_view(encode_view([group], ViewState("self", 0, 0), WORDS))
    assert view.header["groups"][0]["layers"][0]["stats"] == [{"entropy": None, "diagonal": None}]
    assert view.thumbnails["self", 0].sum() == 0


def test_the_same_view_is_the_same_bytes(groups):
    state = ViewState("cross", 0, 1)
    assert encode_view(groups, state, WORDS) == encode_view(groups, state, WORDS)


def test_a_twelve_by_twelve_model_stays_below_its_budget():
    with record() as trace:
        for layer in range(12):
            record_weights(torch.full((1, 12, 128, 128), 1 / 128), f"encoder.{layer}.self")
    tokens = tuple(f"token{i}" for i in range(128))
    group = MapGroup("self", "Self", "text", "text", tokens, tokens, tuple(trace))
    assert len(encode_view([group], ViewState("self", 0, 0), WORDS)) <= 700_000


@pytest.mark.parametrize(
    "state",
    [
        ViewState("absent", 0, 0),
        ViewState("cross", 2, 0),
        ViewState("cross", 0, 3),
        ViewState("cross", -1, 0),
        ViewState("cross", 0, 0, Pin("query", 5)),
        ViewState("cross", 0, 0, Pin("key", 7)),
    ],
)
def test_a_view_that_the_groups_do_not_have_is_refused(groups, state):
    with pytest.raises(ValueError, match="view: expected a head and a token of the groups self, cross, long"):
        encode_view(groups, state, WORDS)


def test_missing_words_and_twin_groups_are_refused(groups):
    words = {name: text for name, text in WORDS.items() if name != "pair"}
    with pytest.raises(ValueError, match="got none for pair"):
        encode_view(groups, ViewState("cross", 0, 0), words)
    with pytest.raises(ValueError, match="one of each id, got self, self"):
        encode_view([groups[0], replace(groups[1], id="self")], ViewState("self", 0, 0), WORDS)


def test_bytes_cut_short_or_of_another_version_are_refused(groups):
    data = encode_view(groups, ViewState("cross", 0, 0), WORDS)
    for cut in (0, 3, 100, len(data) - 1):
        with pytest.raises(ValueError, match=r"expected|buffer"):
            decode_view(data[:cut])
    with pytest.raises(ValueError, match="version: expected 1, got 2"):
        decode_view(data.replace(b'"version":1', b'"version":2', 1))
