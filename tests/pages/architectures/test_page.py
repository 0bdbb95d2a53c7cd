"""The architectures chapter: its table, figures, paths and costs are the library's, and what books print."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from pages.architectures.figures import Unit, connections, curves_figure, measured_figure, pairs_figure, shortest_path
from pages.architectures.network_figure import connection_figure
from pages.architectures.parts import nearer_end
from tests.pages.reading import badges, claim_names, figure_names, texts
from tests.visits import Visits
from ui.compute.benchmark import Measurement
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
WORDS = load_words(CHAPTER, "en")("sentence").split()
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


def test_two_tokens_in_either_order(open_page: OpenPage) -> None:
    app = open_page(CHAPTER)
    for one, other in ((3, 9), (9, 3), (11, 12)):
        app.selectbox(key="a-from").set_value(one)
        app.selectbox(key="a-to").set_value(other).run()
        assert not app.exception
        distance = abs(other - one)
        assert f"**Path from *{WORDS[one - 1]}* to *{WORDS[other - 1]}***, {distance} apart" in texts(app)
        assert f"| Recurrent | {distance if one < other else '∞'} |" in texts(app)
        assert f"| Self-attention | {1 if one < other else '∞'} |" in texts(app)
        assert sum("no signal from" in words for words in badges(app)) == (0 if one < other else 1)
        assert all(badges(app).values())


def test_the_permutation_test(open_page: OpenPage) -> None:
    app = open_page(CHAPTER, **{"a-section": SHUFFLE})
    found = badges(app)
    assert found["self-attention: shuffled words give the same outputs, shuffled"]
    assert found["the mean of its outputs does not change"]
    assert sum("the order changes the outputs" in words for words in found) == 4
    assert all(found.values())
    app.slider(key="a-order").set_value(2).run()
    assert all(badges(app).values())


@pytest.mark.parametrize("text", ["", "cat cat cat"])
def test_nothing_to_shuffle_is_a_sentence(open_page: OpenPage, text: str) -> None:
    app = open_page(CHAPTER, **{"a-section": SHUFFLE})
    app.text_input(key="a-text").set_value(text).run()
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


def test_the_stopwatch_stops_where_it_is(open_page: OpenPage) -> None:
    app = open_page(CHAPTER, **{"a-section": STOPWATCH, "a-most": "256", "a-width": "64", "open-all": "false"})
    app.button(key="a-stopwatch-start").click().run()
    app.run()
    app.button(key="a-stopwatch-stop").click().run()
    assert not app.exception
    stopped = re.search(r"Stopped after (\d+) of 25: width 64", texts(app))
    assert stopped
    done = int(stopped[1])
    assert 1 <= done < 25
    app.run()
    assert f"Stopped after {done} of 25" in texts(app)


def test_the_chart_that_breaks_shows_no_path(visits: Visits) -> None:
    app = visits(CHAPTER, **{"a-break": "a layer too few"})
    found = badges(app)
    assert [holds for words, holds in found.items() if "as many layers as its path" in words]
    assert figure_names(app).count("network-convolution") == 2


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


@pytest.mark.parametrize("shown", ["order", "counted", "sequential", "path"])
def test_curves_hold_the_table_and_the_crossings(shown: str) -> None:
    sizes, lengths = LayerSizes(12, 64, 3, 4), (2, 4, 8, 64, 256)
    figure = curves_figure(shown, lengths, sizes, {"recurrent": 64} if shown == "order" else {}, LABELS)
    for trace, name in zip(figure.data, ARCHITECTURES, strict=False):
        costs = [getattr(layer_cost(name, LayerSizes(n, 64, 3, 4)), shown) for n in lengths]
        np.testing.assert_allclose(trace.y, costs, rtol=1e-6)
    assert figure.layout.shapes[0].x0 == 12
    if shown == "order":
        crossing = figure.data[-1]
        assert (crossing.x[0], crossing.y[0]) == (64, 64**3)


def test_maps_of_every_pair_share_one_scale() -> None:
    sizes = LayerSizes(5, 8, 3, 4)
    figure = pairs_figure({name: path_matrix(name, sizes).numpy() for name in ARCHITECTURES}, LABELS)
    for trace, name in zip(figure.data, ARCHITECTURES, strict=True):
        lengths = path_matrix(name, sizes).numpy()
        np.testing.assert_array_equal(trace.z, np.where(np.isinf(lengths), np.nan, lengths))
        assert trace.coloraxis == "coloraxis"
    endless = pairs_figure({"dilated": path_matrix("dilated", LayerSizes(3, 8, 1, 4)).numpy()}, LABELS).data[0].z
    assert np.isnan(endless[0, 1])
    assert endless[0, 0] == 0


def test_times_of_the_layers_measured() -> None:
    found = [
        Measurement("attention", 16, 0.001),
        Measurement("attention", 32, 0.004),
        Measurement("recurrent", 16, None),
    ]
    measured = measured_figure(found, 256, LABELS)
    own = next(trace for trace in measured.data if trace.name == LABELS["attention"])
    np.testing.assert_allclose(own.y, [1, 4])
    assert len(next(trace for trace in measured.data if trace.name == LABELS["recurrent"]).x) == 0


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
