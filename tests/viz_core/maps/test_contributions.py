"""Contributions by loops, scores dimension by dimension, and what is refused."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from viz_core.attention import AdditiveAttention, MultiHeadAttention
from viz_core.maps.contributions import contribution_norms, contribution_sum
from viz_core.maps.score_products import score_products
from viz_core.models import TransformerEncoder
from viz_core.positional import ALiBi
from viz_core.trace import AttentionCall, attend, intervene, load_trace, off, record, save_trace, sharpen


def recorded(layer: MultiHeadAttention, *inputs: Any, **options: Any) -> tuple[AttentionCall, torch.Tensor]:
    with record(values=True) as trace:
        output = layer(*inputs, **options)
    return trace["attention.0"], output.detach()


@settings(max_examples=25)
@given(key_heads=st.sampled_from([1, 2, 4]), queries=st.integers(1, 4), keys=st.integers(1, 5), seed=st.integers(0, 99))
def test_norms_by_loops(key_heads: int, queries: int, keys: int, seed: int) -> None:
    torch.manual_seed(seed)
    layer = MultiHeadAttention(12, 4, num_key_heads=key_heads)
    Q, K = torch.randn(2, queries, 12), torch.randn(2, keys, 12)
    lengths = torch.randint(0, keys + 1, (2,))
    call, _ = recorded(layer, Q, K, K, lengths)
    norms, weights = contribution_norms(call, layer.W_o), call.weights()
    assert norms.shape == (2, 4, queries, keys)
    V, W = layer.W_v(K).detach(), layer.W_o.weight.detach()
    for h in range(4):
        g = h * key_heads // 4
        for b in range(2):
            for j in range(keys):
                shifted = W[:, 3 * h : 3 * h + 3] @ V[b, j, 3 * g : 3 * g + 3]
                for i in range(queries):
                    expected = (weights[b, h, i, j] * shifted).norm()
                    torch.testing.assert_close(norms[b, h, i, j], expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    "options",
    [{}, {"num_key_heads": 1}, {"softcap": 0.5, "window": 2}, {"positions": ALiBi()}],
    ids=["book", "grouped", "capped", "alibi"],
)
def test_the_parts_add_up_to_the_output(bias: bool, options: dict[str, Any]) -> None:
    layer = MultiHeadAttention(12, 4, bias=bias, **options)
    X = torch.randn(2, 5, 12)
    call, output = recorded(layer, X, X, X, torch.tensor([5, 2]), causal=True)
    total = contribution_sum(call, layer.W_o)
    torch.testing.assert_close(total if layer.W_o.bias is None else total + layer.W_o.bias, output, atol=1e-5, rtol=0)


def test_a_short_vector_under_a_large_weight_adds_little() -> None:
    """By hand: weights 1/2 and 1/2, values (3, 4) and (0, 0), W_o twice the identity."""
    with record(values=True) as trace:
        attend(torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 2, 2), torch.tensor([[[[3.0, 4.0], [0.0, 0.0]]]]))
    W_o = nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        W_o.weight.copy_(2 * torch.eye(2))
    assert contribution_norms(trace["attention.0"], W_o).tolist() == [[[[5.0, 0.0]]]]
    assert contribution_sum(trace["attention.0"], W_o).tolist() == [[[3.0, 4.0]]]


def test_additive_attention_adds_up_its_values_as_they_are(tmp_path: Path) -> None:
    """a_ij v_j by a loop, and their sum against the layer's output; also from a file."""
    layer, Q, K, V = AdditiveAttention(6, 5, 7), torch.randn(2, 3, 6), torch.randn(2, 4, 5), torch.randn(2, 4, 9)
    with record(values=True) as trace:
        output = layer(Q, K, V, torch.tensor([4, 2])).detach()
    save_trace(trace, tmp_path / "run.safetensors")
    for call in (trace["attention.0"], load_trace(tmp_path / "run.safetensors")["attention.0"]):
        norms, weights = contribution_norms(call, None), call.weights()
        expected = [[[(weights[b, 0, i, j] * V[b, j]).norm() for j in range(4)] for i in range(3)] for b in range(2)]
        torch.testing.assert_close(norms[:, 0], torch.tensor(expected))
        torch.testing.assert_close(contribution_sum(call, None), output, atol=1e-6, rtol=0)


def test_values_are_kept_when_asked_for_and_counted() -> None:
    encoder, ids = TransformerEncoder(9, 8, 8, 2, 2, 0.0), torch.zeros(1, 4, dtype=torch.long)
    with record() as plain:
        encoder(ids)
    with record(values=True) as trace:
        encoder(ids)
    assert trace.nbytes == plain.nbytes + 2 * 4 * 8 * 4
    assert not trace["encoder.1.self"].values.requires_grad
    assert trace.to("cpu")["encoder.1.self"].values.shape == (1, 2, 4, 4)
    with pytest.raises(ValueError, match=r"site 'encoder.1.self': expected a call recorded by record\(values=True\)"):
        contribution_norms(plain["encoder.1.self"], encoder.blocks[1].attention.W_o)


@pytest.mark.usefixtures("shapes_unchecked")
def test_what_has_no_contributions_is_refused() -> None:
    layer, X = MultiHeadAttention(8, 2), torch.randn(1, 3, 8)
    call, _ = recorded(layer, X, X, X)
    with pytest.raises(ValueError, match="W_o: expected an nn.Linear with 8 inputs, got 6 inputs"):
        contribution_norms(call, nn.Linear(6, 8))
    with pytest.raises(ValueError, match="W_o: expected an nn.Linear with 8 inputs, got NoneType"):
        contribution_norms(call, None)
    with pytest.raises(ValueError, match="W_o: expected an nn.Linear with 8 inputs, got Tensor"):
        contribution_sum(call, torch.zeros(8, 8))  # type: ignore[arg-type]
    call.values.add_(1)
    with pytest.raises(ValueError, match="was changed in place after it was recorded"):
        contribution_norms(call, layer.W_o)
    additive = AdditiveAttention(8, 8, 8)
    with record() as trace:
        additive(X, X, X)
    with pytest.raises(ValueError, match="expected a call recorded by"):
        contribution_norms(trace["attention.0"], None)
    with pytest.raises(ValueError, match="values: expected False with differentiable"), record(True, values=True):
        pass


def recorded_scores(queries: torch.Tensor, keys: torch.Tensor, **how: Any) -> AttentionCall:
    with record() as trace:
        attend(queries, keys, torch.zeros_like(keys), site="encoder.0.self", **how)
    return trace["encoder.0.self"]


def test_by_hand() -> None:
    """q = (1, 2, 3), k = (4, -5, 6), scale 1/2: 2 - 5 + 9 = 6; a bias of 1/4 makes it 6.25."""
    queries, keys = torch.tensor([[[[1.0, 2.0, 3.0]]]]), torch.tensor([[[[4.0, -5.0, 6.0], [0.0, 0.0, 0.0]]]])
    found = score_products(recorded_scores(queries, keys, scale=0.5, bias=torch.tensor([[[[0.25, 0.0]]]])), 0, 0, 0)
    assert found.query.tolist() == [1, 2, 3]
    assert found.key.tolist() == [4, -5, 6]
    assert (found.scale, found.products.tolist()) == (0.5, [2, -5, 9])
    assert (found.cap, found.bias, found.total, found.score, found.residual) == (0, 0.25, 6.25, 6.25, 0)
    assert found.weight == pytest.approx(math.exp(6.25) / (math.exp(6.25) + 1))
    assert not found.hidden
    assert found.half == 1, "9 of 16"


def test_a_cap_by_hand() -> None:
    """The sum 2 under a cap of 1: tanh 2 = 0.964, so the cap takes 1.036 off, before the bias."""
    found = score_products(
        recorded_scores(torch.ones(1, 1, 1, 2), torch.ones(1, 1, 1, 2), scale=1.0, softcap=1.0), -1, -1, -1
    )
    assert found.products.tolist() == [1, 1]
    assert found.half == 1
    assert found.cap == pytest.approx(math.tanh(2) - 2)
    assert found.score == pytest.approx(math.tanh(2))
    assert found.residual < 1e-6


@pytest.mark.parametrize("mask", [torch.tensor([[[[True, False]]]]), None])
def test_a_hidden_key_has_no_score(mask: torch.Tensor | None) -> None:
    """By a mask of truth values, or by an additive one; its products are there all the same."""
    how = {"mask": mask} if mask is not None else {"bias": torch.tensor([[[[0.0, torch.finfo(torch.float32).min]]]])}
    call = recorded_scores(torch.ones(1, 1, 1, 2), torch.ones(1, 1, 2, 2), **how)
    found = score_products(call, 0, 0, 1)
    assert found.hidden
    assert (found.weight, found.residual) == (0, 0)
    assert found.products.sum() == pytest.approx(math.sqrt(2))
    assert not score_products(call, 0, 0, 0).hidden


@settings(max_examples=12)
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
    call = recorded_scores(queries, keys, causal=causal, scale=0.3, bias=bias.to(dtype))
    expected = 0.3 * queries.float() @ keys.float().repeat_interleave(group, dim=1).mT + bias.to(dtype).float()
    for head, query, key in np.ndindex(2, 3, 4):
        found = score_products(call, head, query, key, row)
        assert found.total == pytest.approx(float(expected[row, head, query, key]), abs=1e-5)
        assert found.residual < 1e-5
        assert found.hidden == (causal and key > query + 1)


@pytest.mark.usefixtures("shapes_unchecked")
def test_what_has_no_products_is_refused() -> None:
    call = recorded_scores(torch.ones(1, 2, 3, 4), torch.ones(1, 2, 3, 4))
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
        edited = recorded_scores(torch.ones(1, 2, 3, 4), torch.ones(1, 2, 3, 4))
    assert score_products(edited, 0, 0, 0).score == pytest.approx(2)
    with pytest.raises(ValueError, match="expected a head without interventions"):
        score_products(edited, 1, 0, 0)
