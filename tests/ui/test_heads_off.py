"""Heads by their names, switched off, and their importance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.view_bytes import decode_view
from tests.viz_core.view.attention_groups import make_group
from ui.blocks import heads_off
from ui.compute.heads import HeadImportance, HeadImportances, gradient_agreement
from ui.text import head_names
from ui.text.head_names import HeadNames, head_at, places_of
from ui.text.words import load_words
from viz_core.pretrained.bleu import Difference
from viz_core.view.components import view_words
from viz_core.view.payload import View, encode_view
from viz_core.view.state import ViewState


@pytest.mark.parametrize(
    ("language", "row"),
    [
        ("en", "head 3 of layer 2 (cross-attention), layer 1 (encoder)"),
        ("pt-BR", "cabeça 3 da camada 2 (atenção cruzada), camada 1 (codificador)"),
        ("zh-TW", "第 2 層第 3 頭（交叉注意力）、第 1 層（編碼器）"),
    ],
)
def test_heads_are_named_in_words_as_the_language_lists_them(
    monkeypatch: pytest.MonkeyPatch, language: str, row: str
) -> None:
    monkeypatch.setattr(heads_off, "current_language", lambda: language)
    monkeypatch.setattr(head_names, "load_words", lambda name: load_words(name, language))
    assert heads_off.name_heads(("cross-2.3", "encoder-1")) == row
    many = [f"decoder-1.{head}" for head in range(1, 9)]
    assert heads_off.name_heads(many).endswith(" … (8)")
    assert head_names.head_title("decoder-1.7") not in heads_off.name_heads(many)


@pytest.mark.parametrize(("order", "expected"), [((1, 2, 3, 4), 1.0), ((4, 3, 2, 1), -1.0), ((2, 1, 4, 3), 0.6)])
def test_agreement_is_that_of_ranks(order: tuple[int, ...], expected: float) -> None:
    heads = [
        HeadImportance("encoder.0.self", i, Difference(-cost, -cost, -cost), None, float(np.exp(gradient)))
        for i, (cost, gradient) in enumerate(zip((1, 2, 3, 4), order, strict=True))
    ]
    assert gradient_agreement(HeadImportances("bleu", 1.0, 4, tuple(heads))) == pytest.approx(expected)


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
