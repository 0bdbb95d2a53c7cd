"""KERPLE against its formula, pair by pair."""

from __future__ import annotations

import math

import pytest
import torch

from viz_core.positional.kerple import KerpleLog


@pytest.mark.parametrize(("num_queries", "num_keys"), [(5, 5), (2, 7), (1, 1)])
def test_the_penalty_by_loops(num_queries: int, num_keys: int) -> None:
    scheme = KerpleLog(3)
    with torch.no_grad():
        bias = scheme.bias(torch.zeros(2, 3, num_queries, 4), num_keys)
    assert bias is not None
    assert bias.shape == (1, 3, num_queries, num_keys)
    for h in range(3):
        r1, r2 = (math.exp(log.tolist()[h]) for log in (scheme.log_r1, scheme.log_r2))
        for i in range(num_queries):
            for j in range(num_keys):
                distance = abs(j - (num_keys - num_queries + i))
                assert float(bias[0, h, i, j]) == pytest.approx(-r1 * math.log(1 + r2 * distance), abs=1e-5)


def test_each_step_costs_less_than_the_one_before() -> None:
    steps = KerpleLog(4)(1, 50)[0, :, 0].flip(-1).diff(dim=-1)
    assert (steps < 0).all()
    assert (steps.diff(dim=-1) > 0).all()


def test_it_starts_in_the_authors_range() -> None:
    scheme = KerpleLog(1000)
    assert 0.0099 <= scheme.log_r1.exp().min() < scheme.log_r1.exp().max() <= 2.0001
    assert 0.0099 <= scheme.log_r2.exp().min() < scheme.log_r2.exp().max() <= 1.0001


@pytest.mark.usefixtures("shapes_unchecked")
def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"q: expected shape \(batch, 8, queries, d\), got \(1, 2, 3, 4\)"):
        KerpleLog(8).bias(torch.zeros(1, 2, 3, 4), 3)
    with pytest.raises(ValueError, match="num_heads: expected at least 1, got 0"):
        KerpleLog(0)
