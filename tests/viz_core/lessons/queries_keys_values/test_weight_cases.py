"""The special cases of weights, and numbers as people type them."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from viz_core.lessons.queries_keys_values.lookup import CASES, cases_met, copy_error, weights_of_case


def f64(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("free", [-1, 3, 1]),
        ("non-negative", [0, 3, 1]),
        ("convex", [0, 0.75, 0.25]),
        ("one-hot", [0, 1, 0]),
        ("uniform", [1 / 3, 1 / 3, 1 / 3]),
    ],
)
def test_by_hand(case: str, expected: list[float]) -> None:
    raw = f64(-1, 3, 1)
    torch.testing.assert_close(weights_of_case(raw, case), f64(*expected))
    assert raw.tolist() == [-1, 3, 1]


@given(raw=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6), case=st.sampled_from(CASES))
def test_what_a_case_makes_is_that_case(raw: list[float], case: str) -> None:
    if case == "convex" and max(raw) <= 0:
        with pytest.raises(ValueError, match="at least one positive weight, got none"):
            weights_of_case(f64(*raw), case)
    else:
        assert case in cases_met(weights_of_case(f64(*raw), case))


def test_cases_met() -> None:
    assert cases_met(f64(-1, 2)) == ("free",)
    assert cases_met(f64(1, 2)) == ("free", "non-negative")
    assert cases_met(f64(0.2, 0.8)) == ("free", "non-negative", "convex")
    assert cases_met(f64(0, 1)) == ("free", "non-negative", "convex", "one-hot")
    assert cases_met(f64(0.5, 0.5)) == ("free", "non-negative", "convex", "uniform")
    assert cases_met(f64(1)) == CASES


def test_the_first_of_equals_takes_it_all() -> None:
    assert weights_of_case(f64(2, 5, 5), "one-hot").tolist() == [0, 1, 0]


def test_huge_weights_still_sum_to_one() -> None:
    assert weights_of_case(f64(1e308, 1e308), "convex").tolist() == [0.5, 0.5]


def test_refuses() -> None:
    for bad in (f64(), f64(1, math.nan), f64(math.inf)):
        with pytest.raises(ValueError, match="at least one finite number"):
            weights_of_case(bad, "free")


def test_copying_by_the_identity_is_exact() -> None:
    assert copy_error(torch.tensor([0.2, -3.0, 1e9], dtype=torch.float64)) == 0
