"""Hard and soft lookups: two keys worked out by hand, the slope against a difference, the identity matrix."""

from __future__ import annotations

import math

import pytest
import torch

from viz_core.lessons.queries_keys_values.lookup import (
    identity_lookup,
    similarity,
    smallest_gradient,
    soft_lookup,
    top_lookup,
    two_keys,
    undivided,
    without_exponential,
)


def test_two_keys_by_hand() -> None:
    soft, hard, slope = two_keys(torch.tensor([-1.0, 0.0, math.log(3)], dtype=torch.float64), 1.0)
    assert soft.tolist() == pytest.approx([1 / (1 + math.e), 0.5, 0.75])
    assert hard.tolist() == [0, 0, 1]
    assert slope.tolist()[1:] == pytest.approx([0.25, 3 / 16])


@pytest.mark.parametrize("temperature", [0.1, 2.0])
def test_the_slope_is_that_of_the_curve(temperature: float) -> None:
    gaps = torch.linspace(-1, 1, 9, dtype=torch.float64)
    step = 1e-6
    above, below = (two_keys(gaps + sign * step, temperature)[0] for sign in (1, -1))
    assert two_keys(gaps, temperature)[2].tolist() == pytest.approx(((above - below) / (2 * step)).tolist(), rel=1e-6)


def test_the_smallest_gradient_is_that_of_autograd() -> None:
    keys = ["Zhang", "Lipton", "Li"]
    scores = similarity(["Li"], keys)[0].requires_grad_()
    jacobian = torch.autograd.functional.jacobian(lambda s: (s / 0.2).softmax(dim=0), scores)
    assert smallest_gradient("Li", keys, 0.2) == pytest.approx(float(jacobian.diagonal().min()), rel=1e-9)


def test_a_gradient_too_small_to_use_is_not_rounded_to_nothing() -> None:
    assert 0 < smallest_gradient("Li", ["Li", "Hu"], 0.01) < 1e-30
    assert smallest_gradient("Li", ["Li"], 0.2) == 0  # one key has all of it, whatever its score


@pytest.mark.parametrize("size", [1, 10, 20])
def test_keys_that_share_nothing_find_themselves(size: int) -> None:
    weights = identity_lookup(size, 0.5)
    own = math.exp(2) / (math.exp(2) + size - 1)
    assert weights.diagonal().tolist() == pytest.approx([own] * size)
    assert float((identity_lookup(size, 0.05) - torch.eye(size)).abs().max()) < 1e-7


def test_the_best_keys_first() -> None:
    keys = ["Hu", "Lipton", "Li", "Li"]
    assert [place for place, _ in top_lookup("Li", keys, 3)] == [2, 3, 1]
    assert [place for place, _ in top_lookup("Li", keys, 9)] == [2, 3, 1, 0]
    assert top_lookup("Li", keys, 1)[0][1] == pytest.approx(1)
    assert top_lookup("Li", [], 2) == []


def test_undivided_weights_are_in_the_same_ratios() -> None:
    raw, weights = undivided(["Li"], ["Li", "Hu"], 0.5)[0], soft_lookup(["Li"], ["Li", "Hu"], 0.5)[0]
    assert (raw / raw.sum()).tolist() == pytest.approx(weights.tolist())
    assert float(raw.sum()) > 1


def test_without_an_exponential_the_temperature_cancels() -> None:
    given = [without_exponential(["Li"], ["Li", "Lipton", "Hu"], temperature)[0] for temperature in (0.1, 10.0)]
    torch.testing.assert_close(*given)
    assert given[0].tolist()[2] == 0
    assert without_exponential(["q"], ["Li"], 1.0).isnan().all(), "0/0"
