"""A score dimension by dimension: by hand, against the formula, and what is refused."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from viz_core.attention import AdditiveAttention
from viz_core.maps.score_products import score_products
from viz_core.trace import AttentionCall, attend, intervene, off, record, sharpen


def recorded(queries: torch.Tensor, keys: torch.Tensor, **how: Any) -> AttentionCall:
    with record() as trace:
        attend(queries, keys, torch.zeros_like(keys), site="encoder.0.self", **how)
    return trace["encoder.0.self"]


def test_by_hand() -> None:
    """q = (1, 2, 3), k = (4, -5, 6), scale 1/2: 2 - 5 + 9 = 6; a bias of 1/4 makes it 6.25."""
    queries, keys = torch.tensor([[[[1.0, 2.0, 3.0]]]]), torch.tensor([[[[4.0, -5.0, 6.0], [0.0, 0.0, 0.0]]]])
    found = score_products(recorded(queries, keys, scale=0.5, bias=torch.tensor([[[[0.25, 0.0]]]])), 0, 0, 0)
    assert found.query.tolist() == [1, 2, 3]
    assert found.key.tolist() == [4, -5, 6]
    assert (found.scale, found.products.tolist()) == (0.5, [2, -5, 9])
    assert (found.cap, found.bias, found.total, found.score, found.residual) == (0, 0.25, 6.25, 6.25, 0)
    assert found.weight == pytest.approx(math.exp(6.25) / (math.exp(6.25) + 1))
    assert not found.hidden
    assert found.half == 1, "9 of 16"


def test_a_cap_by_hand() -> None:
    """The sum 2 under a cap of 1: tanh 2 = 0.964, so the cap takes 1.036 off, before the bias."""
    found = score_products(recorded(torch.ones(1, 1, 1, 2), torch.ones(1, 1, 1, 2), scale=1.0, softcap=1.0), -1, -1, -1)
    assert found.products.tolist() == [1, 1]
    assert found.half == 1
    assert found.cap == pytest.approx(math.tanh(2) - 2)
    assert found.score == pytest.approx(math.tanh(2))
    assert found.residual < 1e-6


@pytest.mark.parametrize("mask", [torch.tensor([[[[True, False]]]]), None])
def test_a_hidden_key_has_no_score(mask: torch.Tensor | None) -> None:
    """By a mask of truth values, or by an additive one; its products are there all the same."""
    how = {"mask": mask} if mask is not None else {"bias": torch.tensor([[[[0.0, torch.finfo(torch.float32).min]]]])}
    call = recorded(torch.ones(1, 1, 1, 2), torch.ones(1, 1, 2, 2), **how)
    found = score_products(call, 0, 0, 1)
    assert found.hidden
    assert (found.weight, found.residual) == (0, 0)
    assert found.products.sum() == pytest.approx(math.sqrt(2))
    assert not score_products(call, 0, 0, 0).hidden


@given(
    group=st.sampled_from([1, 2]),
    causal=st.booleans(),
    wide=st.booleans(),
    row=st.integers(0, 1),
    seed=st.integers(0, 99),
)
def test_the_products_of_every_pair_are_the_scaled_product_of_the_tensors(
    group: int, causal: bool, wide: bool, row: int, seed: int
) -> None:
    torch.manual_seed(seed)
    dtype = torch.float32 if wide else torch.bfloat16
    queries, keys = torch.randn(2, 2, 3, 5).to(dtype), torch.randn(2, 2 // group, 4, 5).to(dtype)
    bias = torch.randn(1, 2, 1, 4)
    call = recorded(queries, keys, causal=causal, scale=0.3, bias=bias.to(dtype))
    expected = 0.3 * queries.float() @ keys.float().repeat_interleave(group, dim=1).mT + bias.to(dtype).float()
    for head, query, key in np.ndindex(2, 3, 4):
        found = score_products(call, head, query, key, row)
        assert found.total == pytest.approx(float(expected[row, head, query, key]), abs=1e-5)
        assert found.residual < 1e-5
        assert found.hidden == (causal and key > query + 1)


@pytest.mark.usefixtures("shapes_unchecked")
def test_what_has_no_products_is_refused() -> None:
    call = recorded(torch.ones(1, 2, 3, 4), torch.ones(1, 2, 3, 4))
    for name, places in {"head": (2, 0, 0), "query": (0, 3, 0), "key": (0, 0, -4), "row": (0, 0, 0, 1)}.items():
        with pytest.raises(IndexError, match=f"{name}: expected 0 to"):
            score_products(call, *places)
    X = torch.randn(1, 3, 8)
    with record() as trace:
        AdditiveAttention(8, 8, 8)(X, X, X)
    with pytest.raises(
        ValueError, match="site 'attention.0': expected queries and keys, got a layer that gives whole maps"
    ):
        score_products(trace["attention.0"], 0, 0, 0)
    with intervene({"encoder.0.self": [off(1), sharpen(1, 0.5)]}):
        edited = recorded(torch.ones(1, 2, 3, 4), torch.ones(1, 2, 3, 4))
    assert score_products(edited, 0, 0, 0).score == pytest.approx(2)
    with pytest.raises(ValueError, match="expected a head without interventions"):
        score_products(edited, 1, 0, 0)
