"""Gradients arrive when the formulas say, and only attention over everything is blind to order."""

from __future__ import annotations

import pytest
import torch

from viz_core.lessons.architectures.cheaper import (
    first_head_weights,
    fresh_layers,
    pooled_residual,
    shuffled_residual,
    signal_strength,
    timed_call,
)
from viz_core.lessons.architectures.costs import ARCHITECTURES, LayerSizes, path_length
from viz_core.lessons.architectures.layers import build_layer


@pytest.mark.parametrize("name", ["convolution", "dilated", "restricted"])
@pytest.mark.parametrize(("first", "last"), [(0, 12), (3, 9), (5, 6)])
@pytest.mark.parametrize("window", [2, 3, 5])
def test_a_signal_arrives_in_the_layer_the_formula_names(name: str, first: int, last: int, window: int) -> None:
    sizes = LayerSizes(13, 4, window, window)
    length = int(path_length(name, first, last, sizes))
    assert signal_strength(name, first, last, sizes, length) > 0
    if length > 1:
        assert signal_strength(name, first, last, sizes, length - 1) == 0


def test_one_layer_of_attention_or_recurrence_is_enough() -> None:
    sizes = LayerSizes(13, 4, 3, 3)
    assert signal_strength("attention", 0, 12, sizes, 1) > 0
    assert signal_strength("recurrent", 0, 12, sizes, 1) > 0


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_no_signal_goes_back(name: str) -> None:
    assert signal_strength(name, 12, 0, LayerSizes(13, 4, 3, 3), 12) == 0


def test_a_window_of_one_brings_nothing() -> None:
    for name in ("convolution", "dilated", "restricted"):
        assert signal_strength(name, 0, 1, LayerSizes(4, 4, 1, 1), 4) == 0


def test_global_random_numbers_are_left_alone() -> None:
    torch.manual_seed(5)
    wanted = torch.rand(1)
    torch.manual_seed(5)
    signal_strength("convolution", 0, 1, LayerSizes(4, 4, 2, 2), 1)
    assert torch.equal(torch.rand(1), wanted)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_only_self_attention_is_blind_to_order(name: str) -> None:
    X, order = torch.randn(9, 8), torch.tensor([3, 0, 8, 1, 2, 7, 6, 5, 4])
    layer = build_layer(name, LayerSizes(9, 8, 3, 3), depth=1)
    residual, pooled = shuffled_residual(layer, X, order), pooled_residual(layer, X, order)
    if name == "attention":
        assert max(residual, pooled) < 1e-6
    else:
        assert residual > 1e-3
    assert shuffled_residual(layer, X, torch.arange(9)) == 0


def test_fresh_layers_are_the_same_each_time() -> None:
    first, again = fresh_layers(8), fresh_layers(8)
    assert set(first) == set(ARCHITECTURES)
    X = torch.randn(1, 5, 8)
    for name, layer in first.items():
        assert torch.equal(layer(X), again[name](X))
    weights = first_head_weights(first["attention"], X[0])
    assert weights.shape == (5, 5)
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(5))


def test_a_timed_call_runs_one_layer() -> None:
    output = timed_call("attention", 6, LayerSizes(6, 8, 3, 4), 4, torch.device("cpu"))()
    assert output.shape == (1, 6, 8)  # type: ignore[attr-defined]
