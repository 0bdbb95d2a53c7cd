"""Table 1 by hand, and against torch's own counter of operations."""

from __future__ import annotations

import math

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from viz_core.lessons.architectures.costs import ARCHITECTURES, LayerSizes, crossover, layer_cost
from viz_core.lessons.architectures.layers import build_layer


def test_the_published_table_with_numbers() -> None:
    """n = 100, d = 512, k = 4, r = 25, by hand."""
    rows = {name: layer_cost(name, LayerSizes(100, 512, 4, 25)) for name in ARCHITECTURES}
    assert {name: row.order for name, row in rows.items()} == {
        "attention": 5_120_000,
        "recurrent": 26_214_400,
        "convolution": 104_857_600,
        "dilated": 104_857_600,
        "restricted": 1_280_000,
    }
    assert [row.sequential for row in rows.values()] == [1, 100, 1, 1, 1]
    assert [rows[name].path for name in ("attention", "recurrent", "convolution", "restricted")] == [1, 100, 25, 4]
    assert rows["dilated"].path == pytest.approx(math.log(100) / math.log(4))
    assert rows["attention"].counted == 2 * 5_120_000 + 4 * 26_214_400


@pytest.mark.parametrize("name", ["attention", "recurrent", "convolution", "dilated"])
@pytest.mark.parametrize(("n", "d", "k"), [(1, 8, 1), (13, 8, 3), (16, 12, 5)])
def test_counted_is_what_torch_counts(name: str, n: int, d: int, k: int) -> None:
    sizes = LayerSizes(n, d, k, 4)
    with torch.device("meta"):
        layer, X = build_layer(name, sizes), torch.empty(1, n, d)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        layer(X)
    assert counter.get_total_flops() == 2 * layer_cost(name, sizes).counted  # it counts multiplications and additions


def test_a_window_wider_than_the_text_is_the_whole_text() -> None:
    sizes = LayerSizes(10, 64, 3, 999)
    restricted, full = layer_cost("restricted", sizes), layer_cost("attention", sizes)
    assert (restricted.order, restricted.counted, restricted.path) == (full.order, full.counted, 1)
    assert layer_cost("convolution", LayerSizes(5, 8, 9, 1)).path == 1


@pytest.mark.parametrize("name", ["convolution", "dilated"])
def test_a_kernel_of_one_joins_nothing_but_a_lone_token(name: str) -> None:
    assert math.isinf(layer_cost(name, LayerSizes(2, 8, 1, 4)).path)
    assert layer_cost(name, LayerSizes(1, 8, 1, 4)).path == 1


def test_costs_meet_at_the_crossover() -> None:
    sizes = LayerSizes(7, 64, 3, 20)
    for name, n in {"recurrent": 64, "convolution": 192, "dilated": 192, "restricted": 20}.items():
        assert crossover(name, sizes) == n
        here = LayerSizes(n, 64, 3, 20)
        assert layer_cost(name, here).order == layer_cost("attention", here).order
    before = LayerSizes(63, 64, 3, 20)
    assert layer_cost("attention", before).order < layer_cost("recurrent", before).order
