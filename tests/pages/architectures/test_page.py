"""The architectures chapter: its table, figures, paths and costs are the library's, and what books print."""

import math
from collections import deque
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from pages.architectures.figures import Unit, connections, shortest_path
from pages.architectures.network_figure import connection_figure
from pages.architectures.parts import nearer_end
from tests.pages.reading import badges, claim_names, figure_names, texts
from tests.visits import Visits
from ui.text.words import load_words
from ui.widgets.figure_style import ACCENT, KEYS, QUERIES
from viz_core.lessons.architectures import (
    ARCHITECTURES,
    LayerSizes,
    layer_cost,
    longest_path,
    path_length,
    path_matrix,
)

OpenPage = Callable[..., AppTest]
CHAPTER = "architectures"
DRAWN = {"curves", "graph", "centred", *(f"network-{name}" for name in ARCHITECTURES)}
STOPWATCH, PAIRS, SHUFFLE = "Stopwatch", "Every pair", "Shuffle the words"  # tabs of old links


def test_opens_with_the_table_in_the_readers_numbers(visits: Visits) -> None:
    app = visits(CHAPTER)
    for name in ARCHITECTURES:
        cost = layer_cost(name, LayerSizes(12, 512, 3, 4))
        longest = longest_path(name, LayerSizes(12, 512, 3, 4))
        assert f"| {cost.order:,} | *{cost.counted:,}* |" in texts(app)
        assert f" | *{longest:.0f}* |" in texts(app)
    assert "| Convolution, dilated (k = 3) | 3 |" in texts(app)
    assert "| Convolution, contiguous (k = 3) | 6 |" in texts(app)
    assert {"too-early", "in-time"} <= set(claim_names(app))
    assert all(badges(app).values())
    assert set(figure_names(app)) >= DRAWN
    assert not any("The address asks for" in caption.value for caption in app.caption)


def test_sizes_move_table_paths_and_crossings(open_page: OpenPage) -> None:
    app = open_page(CHAPTER)
    app.select_slider(key="a-n").set_value(4096)
    app.select_slider(key="a-d").set_value(64)
    app.slider(key="a-k").set_value(5)
    app.select_slider(key="a-r").set_value(7).run()
    assert not app.exception
    sizes = LayerSizes(4096, 64, 5, 7)
    for name in ARCHITECTURES:
        assert f"| {layer_cost(name, sizes).order:,} | *{layer_cost(name, sizes).counted:,}* |" in texts(app)
    assert f"| *{longest_path('dilated', sizes)}* |" in texts(app)
    assert "The pictures show the first 16 of 4,096 tokens" in texts(app)
    assert "**n = d = 64**" in texts(app)
    assert "**n = k d = 320**" in texts(app)
    assert all(badges(app).values())


def test_nothing_to_shuffle_is_a_sentence(open_page: OpenPage) -> None:
    app = open_page(CHAPTER, **{"a-section": SHUFFLE})
    app.text_input(key="a-text").set_value("cat cat cat").run()
    assert not app.exception
    assert "at least two different words" in "".join(info.value for info in app.info)


def test_without_a_model_words_are_shuffled_all_the_same(no_checkpoints: None, open_page: OpenPage) -> None:
    assert all(badges(open_page(CHAPTER, **{"a-section": SHUFFLE})).values())


def test_the_stopwatch_measures_a_step_each_time_and_finishes(open_page: OpenPage) -> None:
    app = open_page(CHAPTER, **{"a-section": STOPWATCH, "a-most": "256", "a-width": "64", "open-all": "false"})
    assert "One click times every layer" in "".join(info.value for info in app.info)
    app.button(key="a-stopwatch-start").click().run()
    assert not app.exception
    assert app.button(key="a-stopwatch-start").disabled
    for _ in range(25):  # five layers at five lengths
        app.run()
        assert not app.exception
    assert "Finished: 25 of 25" in texts(app)
    table = app.dataframe[0].value
    assert list(table.iloc[:, 1]) == ["128 → 256"] * 5
    sizes = [LayerSizes(n, 64, 3, 4) for n in (128, 256)]
    before, after = (layer_cost("attention", size).counted for size in sizes)
    assert table.iloc[0, 3] == pytest.approx(after / before)
    assert not app.button(key="a-stopwatch-start").disabled


@pytest.mark.parametrize(("token", "end"), [(1, "from"), (4, "from"), (8, "to"), (12, "to")])
def test_a_click_on_a_token_moves_the_nearer_end_of_the_path(token: int, end: str) -> None:
    assert nearer_end(1, 12, token) == end
    assert nearer_end(12, 1, token) == {"from": "to", "to": "from"}[end]


LABELS = load_words("architectures", "en").group("figure")
SENTENCE = load_words("architectures", "en")("sentence").split()


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_network_with_its_connections_and_the_way(name: str) -> None:
    sizes = LayerSizes(10, 8, 3, 4)
    figure = connection_figure(name, 2, 8, sizes, SENTENCE[:10], LABELS)
    edges, seen, way, units, first, last = figure.data
    depth = {"attention": 1, "recurrent": 1, "convolution": 3, "dilated": 2, "restricted": 2}[name]
    assert len(edges.x) == 3 * len(connections(name, sizes, depth))
    assert len(seen.x) < len(edges.x)
    wanted = shortest_path(name, 2, 8, sizes)
    np.testing.assert_array_equal(way.x, [unit.token + 1 for unit in wanted])
    np.testing.assert_array_equal(way.y, [unit.layer for unit in wanted])
    assert way.line.color == ACCENT
    assert len(units.x) == 10 * (depth + 1)
    assert (first.x[0], first.y[0], first.marker.color) == (3, 0, KEYS)
    assert (last.x[0], last.y[0], last.marker.color) == (9, wanted[-1].layer, QUERIES)


def test_the_way_back_is_none_and_the_picture_shows_what_was_heard() -> None:
    figure = connection_figure("convolution", 4, 1, LayerSizes(6, 8, 3, 4), SENTENCE[:6], LABELS)
    assert len(figure.data[2].x) == 0
    dark = {x for x, y, c in zip(figure.data[3].x, figure.data[3].y, figure.data[3].marker.color, strict=True)
            if c.endswith(",1)") and y == 0}  # fmt: skip
    assert dark == {1, 2}


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
