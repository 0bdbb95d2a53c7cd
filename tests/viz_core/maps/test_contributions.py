"""Contributions and scores by loops, rollout by paths, relevance by finite differences."""

import math
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from viz_core.attention import AdditiveAttention, MultiHeadAttention
from viz_core.maps.contributions import contribution_norms, contribution_sum
from viz_core.maps.rollout import attention_rollout, relevance_maps, rollout_by_layer
from viz_core.maps.score_products import score_products
from viz_core.models.vit import ViT
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


@settings(max_examples=12)
@given(
    group=st.sampled_from([1, 2]),
    causal=st.booleans(),
    wide=st.booleans(),
    row=st.integers(0, 1),
    seed=st.integers(0, 99),
)
def test_the_products_of_every_pair_are_the_scaled_product_of_the_tensors(group, causal, wide, row, seed):
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
    with pytest.raises(IndexError, match="key: expected 0 to"):
        score_products(call, 0, 0, -4)
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


def maps(layers: int, heads: int, n: int, seed: int = 0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(heads, n, n, generator=generator).mul(2).softmax(dim=-1) for _ in range(layers)]


def by_paths(layers: list[torch.Tensor], fuse: str, ratio: float) -> torch.Tensor:
    """The same by looping: every way from token i down to token j, each the product of its steps."""
    n = layers[0].shape[1]
    steps = []
    for weights in layers:
        table = [[0.0] * n for _ in range(n)]
        for i, j in product(range(n), repeat=2):
            heads = [float(w[i, j]) for w in weights]
            table[i][j] = {"mean": sum(heads) / len(heads), "max": max(heads), "min": min(heads)}[fuse]
        for i, j in sorted(product(range(n), repeat=2), key=lambda ij: table[ij[0]][ij[1]])[: int(ratio * n * n)]:
            table[i][j] = 0.0
        for i in range(n):
            table[i][i] += 1
            total = sum(table[i])
            table[i] = [value / total for value in table[i]]
        steps.append(table)
    result = torch.zeros(n, n)
    for path in product(range(n), repeat=len(layers) + 1):  # from the input (first) to the last layer (last)
        share = 1.0
        for step, (below, above) in zip(steps, pairwise(path), strict=True):
            share *= step[above][below]
        result[path[-1], path[0]] += share
    return result


@pytest.mark.parametrize("fuse", ["mean", "max", "min"])
@pytest.mark.parametrize("ratio", [0.0, 0.5, 0.9])
def test_equal_to_the_sum_over_all_paths(fuse: str, ratio: float) -> None:
    layers = maps(3, 2, 4)
    found = attention_rollout(layers, fuse, ratio)  # type: ignore[arg-type]
    torch.testing.assert_close(found, by_paths(layers, fuse, ratio), atol=1e-6, rtol=0)


def test_rollout_by_hand() -> None:
    """Both tokens attend to token 0 alone: half of token 1 is left after a layer, a quarter after two."""
    attention = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])
    torch.testing.assert_close(
        rollout_by_layer([attention, attention]), torch.tensor([[[1.0, 0.0], [0.5, 0.5]], [[1.0, 0.0], [0.75, 0.25]]])
    )


def forward_with(
    model: ViT, X: torch.Tensor, changed: dict[int, torch.Tensor]
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Logits by plain formulas in float64, each layer's weights moved by what is given, and those weights."""
    H = model.embed(X)
    used = []
    for layer, block in enumerate(model.blocks):
        a, Z = block.attention, block.ln1(H)
        q, k, v = (W(Z).reshape(1, 5, 2, 4).transpose(1, 2) for W in (a.W_q, a.W_k, a.W_v))
        weights = (q @ k.transpose(2, 3) / 2).softmax(dim=-1) + changed.get(layer, 0.0)
        used.append(weights)
        H = H + a.W_o((weights @ v).transpose(1, 2).reshape(1, 5, 8))
        H = H + block.mlp.dense2(F.gelu(block.mlp.dense1(block.ln2(H))))
    return model.head(H[:, 0]), used


@pytest.fixture
def double(model: ViT) -> ViT:
    return model.double().requires_grad_(False)


def test_against_finite_differences_of_a_two_layer_model(double: ViT, picture: torch.Tensor) -> None:
    X, target, step = picture.double(), 1, 1e-5
    _, weights = forward_with(double, X, {})
    gradients = []
    for layer in range(2):
        gradient = torch.zeros(2, 5, 5, dtype=torch.float64)
        for place in torch.cartesian_prod(torch.arange(2), torch.arange(5), torch.arange(5)).tolist():
            nudge = torch.zeros(1, 2, 5, 5, dtype=torch.float64)
            nudge[(0, *place)] = step
            up, down = (forward_with(double, X, {layer: sign * nudge})[0][0, target] for sign in (1, -1))
            gradient[tuple(place)] = (up - down) / (2 * step)
        gradients.append(gradient)
    relevance = torch.eye(5, dtype=torch.float64)
    for layer in range(2):
        fused = torch.zeros(5, 5, dtype=torch.float64)
        for head in range(2):
            fused += (gradients[layer][head] * weights[layer][0, head]).clamp_min(0) / 2
        relevance = relevance + fused @ relevance

    with record(differentiable=True) as trace:
        logits = double(X)
    found = relevance_maps(trace, logits[0, target])
    torch.testing.assert_close(found.double(), relevance, atol=1e-6, rtol=1e-5)
    assert (relevance - torch.eye(5)).max() > 1e-3  # there is something to find


def test_relevance_needs_a_graph_and_one_picture(model: ViT, picture: torch.Tensor) -> None:
    for differentiable, pictures, gradients, message in (
        (False, 1, True, "'encoder.0.self': expected a call recorded by record"),
        (True, 1, False, "expected a call recorded by"),
        (True, 2, True, "expected a batch of one, got 2"),
    ):
        with torch.set_grad_enabled(gradients), record(differentiable=differentiable) as trace:
            logits = model(picture.expand(pictures, -1, -1, -1))
        with pytest.raises(ValueError, match=message):
            relevance_maps(trace, logits[0, 0])
