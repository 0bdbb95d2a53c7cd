"""Running means and intervals: by hand, against numpy over all observations, however they come."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.requests.running_mean import Moments


def test_four_observations_by_hand() -> None:
    found = sum((Moments.of(np.array([x])) for x in (0.0, 1.0, 1.0)), Moments.of(np.array([0.0])))
    assert found.count.item() == 4
    assert found.value().item() == 0.5
    assert found.squares.item() == 1.0  # four times 1/4
    assert found.half_width().item() == pytest.approx(1.96 * math.sqrt(1 / 3 / 4), rel=1e-4)


def test_what_was_not_observed_counts_for_nothing() -> None:
    found = Moments.of(np.array([1.0, np.nan, np.nan])) + Moments.of(np.array([3.0, 5.0, np.nan]))
    assert found.count.tolist() == [2, 1, 0]
    np.testing.assert_array_equal(found.value(), [2.0, 5.0, np.nan])
    assert np.isnan(found.half_width()[1:]).all(), "of one observation nobody knows how far it strays"
    assert found.half_width()[0] == pytest.approx(1.96, rel=1e-4)  # s = sqrt 2, over sqrt 2


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30), st.integers(0, 30), st.floats(-1e7, 1e7))
def test_any_split_gives_what_all_together_do(values: list[float], split: int, shift: float) -> None:
    numbers = np.array(values) + shift  # a large mean beside a small spread
    nothing = Moments.of(np.array([np.nan]))
    one, two = (sum((Moments.of(np.array([x])) for x in part), nothing) for part in (numbers[:split], numbers[split:]))
    both = one + two
    assert both.value().item() == pytest.approx(numbers.mean(), rel=1e-9, abs=1e-6)
    expected = 1.96 * numbers.std(ddof=1) / math.sqrt(len(numbers))
    assert both.half_width().item() == pytest.approx(expected, rel=1e-3, abs=1e-6)
