"""The architectures' figures draw the library's connections, ways, costs and times."""

from __future__ import annotations

import numpy as np
import pytest

from pages.architectures.figures import connections, curves_figure, measured_figure, pairs_figure, shortest_path
from pages.architectures.network_figure import connection_figure
from ui.compute.benchmark import Measurement
from ui.text.words import load_words
from ui.widgets.figure_style import ACCENT, KEYS, QUERIES
from viz_core.lessons.architectures.costs import ARCHITECTURES, LayerSizes, layer_cost, path_matrix

LABELS = load_words("architectures", "en").group("figure")
WORDS = load_words("architectures", "en")("sentence").split()


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_network_with_its_connections_and_the_way(name: str) -> None:
    sizes = LayerSizes(10, 8, 3, 4)
    figure = connection_figure(name, 2, 8, sizes, WORDS[:10], LABELS)
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
    figure = connection_figure("convolution", 4, 1, LayerSizes(6, 8, 3, 4), WORDS[:6], LABELS)
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
