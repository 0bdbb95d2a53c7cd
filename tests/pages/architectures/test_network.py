"""Path lengths against a search through the drawn network, and against what books print."""

from __future__ import annotations

import math
from collections import deque
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pages.architectures.figures import Unit, connections, shortest_path
from viz_core.lessons.architectures.costs import ARCHITECTURES, LayerSizes, path_length, path_matrix

LAYERED = ("attention", "convolution", "dilated", "restricted")


def layers_by_search(name: str, first: int, last: int, sizes: LayerSizes, deepest: int) -> float:
    """The first layer whose unit at `last` a signal from token `first` reaches, by breadth-first search."""
    above: dict[Unit, list[Unit]] = {}
    for start, end in connections(name, sizes, deepest):
        above.setdefault(start, []).append(end)
    found, waiting = {Unit(0, first)}, deque([Unit(0, first)])
    while waiting:
        for unit in above.get(waiting.popleft(), []):
            if unit not in found:
                found.add(unit)
                waiting.append(unit)
    return min((unit.layer for unit in found if unit.token == last), default=math.inf)


@settings(max_examples=60)
@given(st.sampled_from(LAYERED), st.integers(1, 14), st.integers(1, 5), st.integers(1, 6), st.data())
def test_a_search_through_the_network_finds_the_same_length(
    name: str, n: int, k: int, r: int, data: st.DataObject
) -> None:
    sizes = LayerSizes(n, 8, k, r)
    first = data.draw(st.integers(0, n - 1))
    last = data.draw(st.integers(0, n - 1))
    assert path_length(name, first, last, sizes) == layers_by_search(name, first, last, sizes, max(1, n))


@settings(max_examples=60)
@given(st.sampled_from(ARCHITECTURES), st.integers(1, 30), st.integers(2, 5), st.integers(2, 6), st.data())
def test_the_way_drawn_goes_along_connections_from_end_to_end(
    name: str, n: int, k: int, r: int, data: st.DataObject
) -> None:
    sizes = LayerSizes(n, 8, k, r)
    first = data.draw(st.integers(0, n - 1))
    last = data.draw(st.integers(first, n - 1))
    way, length = shortest_path(name, first, last, sizes), path_length(name, first, last, sizes)
    assert way[0] == Unit(1 if name == "recurrent" else 0, first)
    assert way[-1].token == last
    assert set(pairwise(way)) <= set(connections(name, sizes, max(1, int(length))))
    assert len(list(pairwise(way))) == length  # as many edges are drawn as the caption says


def test_no_layer_leads_back_so_that_all_are_compared_alike() -> None:
    """Self-attention is as causal as the others: it fills one half of the map of pairs, as they do."""
    sizes = LayerSizes(12, 8, 3, 4)
    for name in ARCHITECTURES:
        assert math.isinf(path_length(name, 11, 0, sizes))
        assert shortest_path(name, 11, 0, sizes) == []


def test_the_matrix_holds_every_pair_and_direction() -> None:
    sizes = LayerSizes(7, 8, 3, 4)
    for name in ARCHITECTURES:
        matrix = path_matrix(name, sizes)
        for i in range(7):
            for j in range(7):
                assert matrix[i, j] == path_length(name, i, j, sizes)
    below = torch.ones(7, 7).tril(-1).bool()
    for name in ARCHITECTURES:
        assert torch.equal(path_matrix(name, sizes).isinf(), below)  # causal: half of the pairs have no way


def test_units_read_what_lies_before_them() -> None:
    sizes = LayerSizes(6, 8, 3, 2)
    assert {s.token for s, e in connections("convolution", sizes, 1) if e == Unit(1, 4)} == {2, 3, 4}
    assert {s.token for s, e in connections("dilated", sizes, 2) if e == Unit(2, 4)} == {1, 4}
    assert {s.token for s, e in connections("restricted", sizes, 1) if e == Unit(1, 0)} == {0}
    assert {s.token for s, e in connections("attention", sizes, 1) if e == Unit(1, 2)} == {0, 1, 2}
    assert (Unit(1, 2), Unit(1, 3)) in connections("recurrent", sizes, 1)


def test_wrong_arguments_say_what_was_expected() -> None:
    sizes = LayerSizes(4, 8, 3, 2)
    with pytest.raises(ValueError, match="name: expected one of"):
        connections("lstm", sizes, 1)
