"""Heads by name: what is read is what was written, in the fewest names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viz_core.view.head_names import HeadNames, head_name

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
