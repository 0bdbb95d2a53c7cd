"""ALiBi: the paper's slopes, the authors' way with other numbers of heads, and the bias by loops."""

from __future__ import annotations

import math

import pytest
import torch
from transformers.models.bloom.modeling_bloom import build_alibi_tensor

from viz_core.positional import alibi_bias, alibi_slopes
from viz_core.positional.kerple import KerpleLog


def test_published_slopes() -> None:
    assert alibi_slopes(8).tolist() == [2.0**-i for i in range(1, 9)]
    assert alibi_slopes(16).tolist() == pytest.approx([2 ** (-i / 2) for i in range(1, 17)], rel=1e-15)
    assert alibi_slopes(1).tolist() == [2.0**-8]


@pytest.mark.parametrize("num_heads", [1, 2, 3, 5, 7, 8, 12, 20, 25, 32, 71, 112])
def test_slopes_are_those_of_bloom(num_heads: int) -> None:
    theirs = build_alibi_tensor(torch.ones(1, 2), num_heads, torch.float32)[:, 0, 1]
    torch.testing.assert_close(alibi_slopes(num_heads).float(), theirs, rtol=1e-5, atol=0)


def test_new_queries_see_the_last_rows_and_both_ways_cost_the_same() -> None:
    full = alibi_bias(6, 9, 9)
    assert torch.equal(alibi_bias(6, 2, 9), full[:, -2:])
    assert torch.equal(full, full.mT)
    diagonal = full.diagonal(dim1=1, dim2=2)
    assert not diagonal.any()
    assert not diagonal.signbit().any()


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
