"""The architectures chapter: its table, figures, paths and costs are the library's, and what books print."""

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pages.architectures.figures import Unit, connections, shortest_path
from pages.architectures.parts import nearer_end
from tests.pages.reading import texts
from tests.visits import Visits
from viz_core.lessons.architectures import ARCHITECTURES, LayerSizes, layer_cost, longest_path, path_length

CHAPTER = "architectures"
LAYERED = ("attention", "convolution", "dilated", "restricted")


def test_opens_with_the_table_in_the_readers_numbers(visits: Visits) -> None:
    app = visits(CHAPTER)
    for name in ARCHITECTURES:
        cost = layer_cost(name, LayerSizes(8, 512, 3, 4))
        assert f"| {cost.order:,} | *{cost.counted:,}* |" in texts(app)
        assert f" | *{longest_path(name, LayerSizes(8, 512, 3, 4)):.0f}* |" in texts(app)
    assert "| Convolution, dilated (k = 3) | 2 |" in texts(app)
    assert "| Convolution, contiguous (k = 3) | 4 |" in texts(app)


@pytest.mark.parametrize(("token", "end"), [(1, "from"), (4, "from"), (8, "to"), (12, "to")])
def test_a_click_on_a_token_moves_the_nearer_end_of_the_path(token: int, end: str) -> None:
    assert nearer_end(1, 12, token) == end
    assert nearer_end(12, 1, token) == {"from": "to", "to": "from"}[end]


def layers_by_search(name: str, first: int, last: int, sizes: LayerSizes, deepest: int) -> float:
    """The first layer whose unit at `last` a signal from token `first` reaches."""
    found = {Unit(0, first)}
    for start, end in sorted(connections(name, sizes, deepest)):  # layer by layer
        found |= {end} if start in found else set()
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


def test_units_read_what_lies_before_them() -> None:
    sizes = LayerSizes(6, 8, 3, 2)
    assert {s.token for s, e in connections("convolution", sizes, 1) if e == Unit(1, 4)} == {2, 3, 4}
    assert {s.token for s, e in connections("dilated", sizes, 2) if e == Unit(2, 4)} == {1, 4}
    assert {s.token for s, e in connections("restricted", sizes, 1) if e == Unit(1, 0)} == {0}
    assert {s.token for s, e in connections("attention", sizes, 1) if e == Unit(1, 2)} == {0, 1, 2}
    assert (Unit(1, 2), Unit(1, 3)) in connections("recurrent", sizes, 1)
