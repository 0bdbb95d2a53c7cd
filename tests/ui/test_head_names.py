"""Heads by name: what is read is what was written, in the fewest names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.view_bytes import decode_view
from tests.viz_core.view.attention_groups import make_group
from ui.text.head_names import HeadNames, head_at, head_name, places_of
from viz_core.view.payload import View, encode_view
from viz_core.view.state import ViewState
from viz_core.view.words import view_words

SITES = (("encoder.0.self", 2), ("encoder.1.self", 2), ("decoder.0.self", 1), ("decoder.0.cross", 3))
NAMES = HeadNames(SITES)
EVERY = [(site, head) for site, count in SITES for head in range(count)]


def test_names_are_those_of_an_address() -> None:
    assert NAMES.every == (
        *("encoder-1", "encoder-1.1", "encoder-1.2", "encoder-2", "encoder-2.1", "encoder-2.2"),
        *("decoder-1", "decoder-1.1", "cross-1", "cross-1.1", "cross-1.2", "cross-1.3"),
    )
    assert NAMES.read(["cross-1.3", "encoder-2", "encoder-2.1"]) == (
        ("encoder.1.self", 0),
        ("encoder.1.self", 1),
        ("decoder.0.cross", 2),
    )
    with pytest.raises(KeyError, match="cross-2"):
        NAMES.read(["cross-2"])


def test_the_view_names_a_head_by_its_place() -> None:
    groups = [make_group(3, 3, "self"), make_group(3, 4, "cross")]
    sites = [[call.site for call in group.calls] for group in groups]
    off = {(sites[0][1], 2), (sites[1][0], 0)}
    places = [f"{groups[0].id}.1.2", f"{groups[1].id}.0.0"]
    assert places_of(off, groups) == places
    assert head_at(places[0], groups) == (sites[0][1], 2)
    for nonsense in (None, 3, "", "self", "self.1.99", f"{groups[0].id}.01.2", {"a": 1}):
        assert head_at(nonsense, groups) is None
    state = ViewState(groups[0].id, 0, 0)
    view = View(groups, view_words())
    assert decode_view(encode_view(view, state, switches=places)).header["switches"] == places
    assert decode_view(encode_view(view, state)).header["switches"] is None


@given(st.sets(st.sampled_from(EVERY)))
def test_what_is_written_is_read(heads: set[tuple[str, int]]) -> None:
    names = NAMES.write(heads)
    assert NAMES.read(names) == tuple(head for head in EVERY if head in heads)
    assert len(names) <= len(heads)
    site, head = EVERY[-1]
    assert set(NAMES.read(NAMES.toggled(names, site, head))) == heads ^ {(site, head)}


@pytest.mark.parametrize(("site", "head"), EVERY)
def test_everything_but_one(site: str, head: int) -> None:
    assert set(NAMES.read(NAMES.but(site, head, of_layer=False))) == set(EVERY) - {(site, head)}
    layer = {each for each in EVERY if each[0] == site}
    assert set(NAMES.read(NAMES.but(site, head, of_layer=True))) == layer - {(site, head)}
    assert head_name(site, head) in NAMES.every
