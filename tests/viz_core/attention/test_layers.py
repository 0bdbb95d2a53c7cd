"""Masked softmax, multi-head and linear attention, against plain algebra, torch and transformers."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from transformers.models.qwen3_next.modeling_qwen3_next import (
    torch_chunk_gated_delta_rule,
    torch_recurrent_gated_delta_rule,
)

from viz_core.attention import MultiHeadAttention, linear, masked_softmax
from viz_core.trace import record


def by_hand(row: list[float], length: int) -> list[float]:
    """Softmax of the first `length` scores, with nothing of torch."""
    top = max(row[:length], default=0.0)
    powers = [math.exp(score - top) for score in row[:length]]
    return [p / sum(powers) for p in powers] + [0.0] * (len(row) - len(powers))


@st.composite
def scores_and_lengths(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    batch, queries, keys = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(1, 6))
    numbers = st.floats(-30, 30, width=32)
    scores = draw(st.lists(numbers, min_size=batch * queries * keys, max_size=batch * queries * keys))
    shape = (batch, queries) if draw(st.booleans()) else (batch,)
    lengths = draw(st.lists(st.integers(0, keys), min_size=math.prod(shape), max_size=math.prod(shape)))
    return torch.tensor(scores).reshape(batch, queries, keys), torch.tensor(lengths).reshape(shape)


@settings(max_examples=80)
@given(scores_and_lengths())
def test_every_row_is_the_softmax_of_its_valid_keys(case: tuple[Tensor, Tensor]) -> None:
    scores, lengths = case
    weights = masked_softmax(scores, lengths)
    per_query = lengths[:, None].expand(scores.shape[:2]) if lengths.dim() == 1 else lengths
    for b in range(scores.shape[0]):
        for q in range(scores.shape[1]):
            expected = by_hand(scores[b, q].tolist(), int(per_query[b, q]))
            torch.testing.assert_close(weights[b, q], torch.tensor(expected), atol=1e-6, rtol=0)


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_an_empty_row_is_zeros_and_sends_back_no_gradient() -> None:
    scores = torch.randn(2, 3, 4, requires_grad=True)
    lengths = torch.tensor([[0, 2, 4], [3, 0, 1]])
    weights = masked_softmax(scores, lengths)
    assert torch.equal(weights[0, 0], torch.zeros(4))
    assert torch.equal(weights[1, 1], torch.zeros(4))
    with torch.autograd.detect_anomaly(check_nan=True):  # no NaN on the way back either
        (weights * torch.arange(4.0)).sum().backward()
    assert scores.grad is not None
    assert torch.equal(scores.grad[0, 0], torch.zeros(4))
    assert torch.equal(scores.grad[1, 1], torch.zeros(4))
    # d/ds_j sum_l l w_l = w_j (j - sum_l l w_l), for a row with two valid keys
    w = weights[0, 1].detach()
    mean = (w * torch.arange(4.0)).sum()
    torch.testing.assert_close(scores.grad[0, 1], w * (torch.arange(4.0) - mean))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_neither_overflows_nor_loses_the_empty_row(dtype: torch.dtype) -> None:
    scores = torch.tensor([[[60000.0, -60000.0, 60000.0], [0.0, 1.0, 2.0]]]).to(dtype)
    weights = masked_softmax(scores, torch.tensor([[2, 3]]))
    assert weights.dtype == dtype
    expected = torch.tensor([[[1, 0, 0], [0.0900, 0.2447, 0.6652]]])
    torch.testing.assert_close(weights.float(), expected, atol=4e-3, rtol=0)
    assert torch.equal(masked_softmax(scores, torch.tensor([0])), torch.zeros(1, 2, 3, dtype=dtype))


WIDTH, HEADS = 12, 3


def as_torch(ours: MultiHeadAttention) -> nn.MultiheadAttention:
    """torch's module with the parameters of ours."""
    sizes = {"kdim": ours.W_k.in_features, "vdim": ours.W_v.in_features}
    theirs = nn.MultiheadAttention(ours.W_q.out_features, ours.num_heads, bias=True, batch_first=True, **sizes)
    projections = (ours.W_q, ours.W_k, ours.W_v)
    with torch.no_grad():
        if theirs.in_proj_weight is not None:
            theirs.in_proj_weight.copy_(torch.cat([p.weight for p in projections]))
        else:
            for target, projection in zip(("q", "k", "v"), projections, strict=True):
                getattr(theirs, f"{target}_proj_weight").copy_(projection.weight)
        biases = [torch.zeros(len(p.weight)) if p.bias is None else p.bias for p in projections]
        theirs.in_proj_bias.copy_(torch.cat(biases))
        theirs.out_proj.weight.copy_(ours.W_o.weight)
        theirs.out_proj.bias.copy_(torch.zeros(len(ours.W_o.weight)) if ours.W_o.bias is None else ours.W_o.bias)
    return theirs


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("sizes", [{}, {"key_size": 7, "value_size": 5}])
def test_equals_torchs_module(bias: bool, causal: bool, sizes: dict[str, int]) -> None:
    ours = MultiHeadAttention(WIDTH, HEADS, bias=bias, **sizes)
    Q = torch.randn(2, 4, WIDTH)
    K, V = torch.randn(2, 6, sizes.get("key_size", WIDTH)), torch.randn(2, 6, sizes.get("value_size", WIDTH))
    lengths = torch.tensor([3, 6])
    padding = torch.arange(6) >= lengths[:, None]
    future = torch.ones(4, 6, dtype=torch.bool).triu(3) if causal else None  # the last query is the newest step
    expected, weights = as_torch(ours)(Q, K, V, key_padding_mask=padding, attn_mask=future, average_attn_weights=False)
    with record() as trace:
        output = ours(Q, K, V, lengths, causal=causal)
    torch.testing.assert_close(output, expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(trace["attention.0"].weights(), weights, atol=1e-6, rtol=0)


def test_dropout_acts_in_training_only() -> None:
    layer, X = MultiHeadAttention(8, 2, dropout=0.5), torch.randn(1, 6, 8)
    assert not torch.equal(layer(X, X, X), layer(X, X, X))
    layer.eval()
    expected, _ = as_torch(layer)(X, X, X)
    torch.testing.assert_close(layer(X, X, X), expected, atol=1e-6, rtol=0)


Rule = Callable[..., linear.LinearOperator]

RULES: dict[str, Rule] = {
    "linear_attention": lambda q, k, _g, _b, **more: linear.linear_attention(q, k, **more),
    "sum": lambda q, k, _g, _b, **more: linear.linear_attention(q, k, normalise=False, **more),
    "retention": lambda q, k, _g, _b, **more: linear.retention(q, k, **more),
    "gated_decay": lambda q, k, g, b, **more: linear.gated_decay(q, k, g, b, **more),
    "delta_rule": lambda q, k, _g, b, **more: linear.delta_rule(q, k, b, **more),
    "gated_delta_rule": linear.gated_delta_rule,
}
rules = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)


def inputs(n: int, seed: int = 0, dtype: torch.dtype = torch.float64, heads: int = 2) -> tuple[Tensor, ...]:
    """Queries, keys of length 1, log decay, strength and values: batch 2, d 4, v 3."""
    draw = torch.Generator().manual_seed(seed)
    q, k, v = (torch.randn(2, heads, n, d, generator=draw, dtype=torch.float64) for d in (4, 4, 3))
    g, b = (torch.rand(2, heads, n, generator=draw, dtype=torch.float64) for _ in range(2))
    return tuple(x.to(dtype) for x in (q, torch.nn.functional.normalize(k, dim=-1), -g, b, v))


def column(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)[None, None, :, None]


def gates(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)[None, None]


@rules
@settings(max_examples=30)
@given(n=st.integers(1, 12), size=st.integers(1, 13), seed=st.integers(0, 1000))
def test_the_three_forms_agree(rule: Rule, n: int, size: int, seed: int) -> None:
    *given_, values = inputs(n, seed)
    operator = rule(*given_)
    expected = operator.recurrent(values)
    torch.testing.assert_close(operator.chunked(values, size), expected)
    torch.testing.assert_close(operator.map() @ values, expected)
    torch.testing.assert_close(operator.map().triu(1), torch.zeros(2, 2, n, n, dtype=torch.float64))


@rules
def test_padding_changes_no_token(rule: Rule) -> None:
    """On either side: the tokens' outputs are those of the text alone."""
    *given_, values = inputs(6)
    alone = rule(*(x[:, :, :4] for x in given_)).recurrent(values[:, :, :4])
    right = rule(*given_, valid_lens=torch.tensor([4, 4]))
    torch.testing.assert_close(right.recurrent(values)[:, :, :4], alone)
    assert (right.map()[..., 4:] == 0).all()
    torch.testing.assert_close(right.chunked(values, 4), right.recurrent(values))
    order = [4, 5, 0, 1, 2, 3]
    left = rule(*(x[:, :, order] for x in given_)).masked(torch.tensor([[False] * 2 + [True] * 4] * 2))
    torch.testing.assert_close(left.recurrent(values[:, :, order])[:, :, 2:], alone)
    torch.testing.assert_close(left.map() @ values[:, :, order], left.chunked(values[:, :, order], 3))


@rules
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_rounds_once(rule: Rule, dtype: torch.dtype) -> None:
    *given_, values = inputs(40, dtype=dtype)
    operator = rule(*given_)
    exact = rule(*(x.double() for x in given_)).recurrent(values.double())
    bound = 2 * torch.finfo(dtype).eps
    for output in (operator.recurrent(values), operator.chunked(values, 16)):
        assert output.dtype == dtype
        assert operator.map().dtype == torch.float32
        feature_rounding = bound * 8 * float(exact.abs().max())  # elu + 1 is rounded once in the type
        torch.testing.assert_close(output.double(), exact, rtol=bound, atol=feature_rounding)


def test_sums_by_hand() -> None:
    """One dimension: phi(0) = 1, phi(1) = 2; weights 1, 2 and 2 of a sum of 5 in the last row."""
    operator = linear.linear_attention(column(0, 0, 1), column(0, 1, 1))
    expected = torch.tensor([[1, 0, 0], [1 / 3, 2 / 3, 0], [0.2, 0.4, 0.4]], dtype=torch.float64)
    torch.testing.assert_close(operator.map()[0, 0], expected)
    assert operator.recurrent(column(5, 10, 20)).flatten().tolist() == pytest.approx([5, 25 / 3, 13])
    assert linear.elu_features(column(0, 2, -1)).flatten().tolist() == pytest.approx([1, 3, 0.36787944])


def test_decay_by_hand() -> None:
    operator = linear.retention(column(1, 1, 2), column(1, 1, 1), torch.tensor([0.5], dtype=torch.float64))
    expected = torch.tensor([[1, 0, 0], [0.5, 1, 0], [0.5, 1, 2]], dtype=torch.float64)
    torch.testing.assert_close(operator.map()[0, 0], expected)
    assert linear.retention_decay(3).tolist() == [31 / 32, 63 / 64, 127 / 128]


def test_a_gate_forgets_everything_before_it() -> None:
    """Decays 1, 1/2, 1/4: the third row weighs its tokens 1/8, 1/4 and 1, times strengths 1, 2, 1."""
    operator = linear.gated_decay(column(1, 1, 1), column(1, 1, 1), gates(1, 0.5, 0.25).log(), gates(1, 2, 1))
    torch.testing.assert_close(operator.map()[0, 0, 2].tolist(), [0.125, 0.5, 1.0])


def test_the_delta_rule_replaces_and_a_sum_adds() -> None:
    """The same key twice, with 3 and then 5: the rule returns 5, the sum 8; half strength goes half the way, to 4."""
    ones, values = column(1, 1), column(3, 5)
    assert linear.delta_rule(ones, ones, gates(1, 1)).recurrent(values).flatten().tolist() == [3, 5]
    assert linear.delta_rule(ones, ones, gates(1, 0.5)).recurrent(values).flatten().tolist() == [3, 4]
    assert linear.LinearOperator(ones, ones).recurrent(values).flatten().tolist() == [3, 8]
    torch.testing.assert_close(linear.delta_rule(ones, ones, gates(1, 0.5)).map()[0, 0, 1].tolist(), [0.5, 0.5])


@pytest.mark.parametrize("theirs", [torch_recurrent_gated_delta_rule, torch_chunk_gated_delta_rule])
def test_the_gated_delta_rule_is_that_of_transformers(theirs: Callable[..., Any]) -> None:
    q, k, g, b, v = inputs(150, dtype=torch.float32)
    operator = linear.gated_delta_rule(q / q.shape[-1] ** 0.5, k, g, b)
    expected = theirs(*(x.transpose(1, 2) for x in (q, k, v, g, b)))[0].transpose(1, 2)
    for output in (operator.recurrent(v), operator.chunked(v), operator.map() @ v):
        torch.testing.assert_close(output, expected, rtol=1e-5, atol=5e-6)  # sums of 150 tokens in float32
