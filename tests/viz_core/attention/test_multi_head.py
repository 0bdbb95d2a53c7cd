"""Masked softmax and multi-head attention, against plain algebra and torch's own module."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from viz_core.attention import MultiHeadAttention, length_mask, masked_softmax
from viz_core.positional import ALiBi, PositionScheme, Rotary
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


def test_published_row() -> None:
    scores = torch.tensor([[[0.0, 1.0, 7.0, -3.0]]])
    weights = masked_softmax(scores, torch.tensor([2]))
    torch.testing.assert_close(weights, torch.tensor([[[0.268941, 0.731059, 0.0, 0.0]]]), atol=5e-7, rtol=0)


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


@settings(max_examples=40)
@given(scores_and_lengths(), st.floats(-50, 50, width=32))
def test_masked_scores_and_a_shift_of_all_do_not_matter(case: tuple[Tensor, Tensor], shift: float) -> None:
    scores, lengths = case
    weights = masked_softmax(scores, lengths)
    valid = length_mask(lengths, *scores.shape).expand_as(scores)
    for junk in (1e30, -1e30, math.inf):
        torch.testing.assert_close(masked_softmax(scores.masked_fill(~valid, junk), lengths), weights, atol=0, rtol=0)
    torch.testing.assert_close(masked_softmax(scores + shift, lengths), weights, atol=1e-5, rtol=0)


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


def test_the_input_is_not_written_to() -> None:
    scores = torch.randn(2, 3, 4)
    before = scores.clone()
    masked_softmax(scores, torch.tensor([1, 0]))
    assert torch.equal(scores, before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_neither_overflows_nor_loses_the_empty_row(dtype: torch.dtype) -> None:
    scores = torch.tensor([[[60000.0, -60000.0, 60000.0], [0.0, 1.0, 2.0]]]).to(dtype)
    weights = masked_softmax(scores, torch.tensor([[2, 3]]))
    assert weights.dtype == dtype
    expected = torch.tensor([[[1, 0, 0], [0.0900, 0.2447, 0.6652]]])
    torch.testing.assert_close(weights.float(), expected, atol=4e-3, rtol=0)
    assert torch.equal(masked_softmax(scores, torch.tensor([0])), torch.zeros(1, 2, 3, dtype=dtype))


def test_length_mask_literally() -> None:
    one = length_mask(torch.tensor([2, 0]), 2, 3, 3)
    assert one.tolist() == [[[True, True, False]], [[False, False, False]]]
    each = length_mask(torch.tensor([[1, 3], [0, 2]]), 2, 2, 3)
    assert each.int().tolist() == [[[1, 0, 0], [1, 1, 1]], [[0, 0, 0], [1, 1, 0]]]


@pytest.mark.usefixtures("shapes_unchecked")
def test_a_mask_refuses_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match=r"scores: expected \(batch, queries, keys\), got shape \(3, 4\)"):
        masked_softmax(torch.zeros(3, 4))
    with pytest.raises(ValueError, match=r"valid_lens: expected shape \(2,\) or \(2, 3\), got \(3,\)"):
        masked_softmax(torch.zeros(2, 3, 4), torch.tensor([1, 2, 3]))
    with pytest.raises(ValueError, match=r"valid_lens: expected shape \(2,\) or \(2, 3\), got \(2, 4\)"):
        masked_softmax(torch.zeros(2, 3, 4), torch.zeros(2, 4, dtype=torch.long))


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize(
    ("lengths", "got"),
    [
        (torch.tensor([-3, 1]), "got -3 to 1"),
        (torch.tensor([1, 9]), "got 1 to 9"),
        (torch.tensor([2.5, 1.0]), r"got float32 of shape \(2,\)"),
        (torch.ones(2, 4, dtype=torch.bool), r"got bool of shape \(2, 4\); a mask goes to attend"),
        (torch.ones(2, 3, dtype=torch.bool), "got bool"),
        ([1, 2], "got list"),
    ],
)
def test_what_is_no_length_is_refused(lengths: Tensor, got: str) -> None:
    with pytest.raises(ValueError, match=got):
        masked_softmax(torch.zeros(2, 3, 4), lengths)


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


def test_a_query_that_may_look_nowhere_gets_the_bias_alone() -> None:
    layer = MultiHeadAttention(8, 2, bias=True)
    X = torch.randn(2, 3, 8, requires_grad=True)
    with record() as trace:
        output = layer(X, X, X, torch.tensor([[0, 3, 2], [3, 0, 1]]))
    assert torch.equal(output[0, 0], layer.W_o.bias)
    assert torch.equal(output[1, 1], layer.W_o.bias)
    weights = trace["attention.0"].weights()
    assert torch.equal(weights[0, :, 0], torch.zeros(2, 3))
    assert torch.equal(weights[1, :, 1], torch.zeros(2, 3))
    output.sum().backward()
    assert X.grad is not None
    assert X.grad.isfinite().all()


def test_projected_keys_and_values_can_be_kept() -> None:
    layer = MultiHeadAttention(8, 2)
    X, lengths = torch.randn(2, 5, 8), torch.tensor([3, 5])
    projected = layer.project(X, X)
    d = 4
    torch.testing.assert_close(projected.keys[:, 1], X @ layer.W_k.weight[d:].T)
    torch.testing.assert_close(projected.values[:, 0], X @ layer.W_v.weight[:d].T)
    assert torch.equal(layer.attend_to(X[:, :2], projected, lengths), layer(X[:, :2], X, X, lengths))


def test_dropout_acts_in_training_only() -> None:
    layer, X = MultiHeadAttention(8, 2, dropout=0.5), torch.randn(1, 6, 8)
    assert not torch.equal(layer(X, X, X), layer(X, X, X))
    layer.eval()
    expected, _ = as_torch(layer)(X, X, X)
    torch.testing.assert_close(layer(X, X, X), expected, atol=1e-6, rtol=0)


@pytest.mark.usefixtures("shapes_unchecked")
def test_refuses_what_does_not_fit() -> None:
    layer = MultiHeadAttention(8, 2, query_size=4, key_size=5, value_size=6)
    Q, K, V = torch.zeros(2, 3, 4), torch.zeros(2, 7, 5), torch.zeros(2, 7, 6)
    with pytest.raises(ValueError, match=r"queries: expected shape \(batch, n, 4\), got \(2, 7, 5\)"):
        layer(K, K, V)
    with pytest.raises(ValueError, match=r"keys: expected shape \(batch, n, 5\), got \(2, 3, 4\)"):
        layer(Q, Q, V)
    with pytest.raises(ValueError, match=r"values: expected shape \(batch, n, 6\), got \(7, 6\)"):
        layer(Q, K, V[0])
    with pytest.raises(ValueError, match="expected one value for each key, got shapes"):
        layer(Q, K, V[:, :4])
    with pytest.raises(ValueError, match="expected queries and keys of one batch size, got 2 and 1"):
        layer(Q, K[:1], V[:1])
    with pytest.raises(ValueError, match=r"valid_lens: expected shape \(2,\) or \(2, 3\), got \(2, 7\)"):
        layer(Q, K, V, torch.ones(2, 7, dtype=torch.long))


def test_the_books_layer_has_no_other_parameters() -> None:
    """Default options change nothing: the same names, the same numbers."""
    plain, changed = MultiHeadAttention(24, 4), MultiHeadAttention(24, 4, num_key_heads=4, positions=PositionScheme())
    assert list(plain.state_dict()) == ["W_q.weight", "W_k.weight", "W_v.weight", "W_o.weight"]
    changed.load_state_dict(plain.state_dict(), strict=True)
    X = torch.randn(2, 5, 24)
    assert torch.equal(plain(X, X, X), changed(X, X, X))
    MultiHeadAttention(24, 4, window=2, softcap=1.0, positions=Rotary()).load_state_dict(plain.state_dict())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_heads": 5}, "num_heads: expected a divisor of num_hiddens=24, got 5"),
        ({"num_heads": -2}, "num_heads: expected at least 1, got -2"),
        ({"num_key_heads": 3}, "num_key_heads: expected a divisor of num_heads=4, got 3"),
        ({"num_key_heads": 0}, "num_key_heads: expected at least 1, got 0"),
        ({"num_key_heads": 2.0}, "num_key_heads: expected a whole number, got float 2.0"),
        ({"num_key_heads": 8}, "num_key_heads: expected a divisor of num_heads=4, got 8"),
        ({"softcap": 0.0}, "softcap: expected a positive number, got 0.0"),
        ({"softcap": float("nan")}, "softcap: expected a positive number, got nan"),
        ({"window": 0}, "window: expected at least 1, got 0"),
        ({"window": 2.5}, "window: expected a whole number, got float 2.5"),
        ({"window": True}, "window: expected a whole number, got bool True"),
        ({"dropout": 2.0}, "dropout: expected a number from 0 to 1, got 2.0"),
        ({"dropout": -1.0}, "dropout: expected a number from 0 to 1, got -1.0"),
        ({"positions": "rotary"}, "positions: expected a scheme, as .*, got 'rotary'"),
    ],
)
@pytest.mark.usefixtures("shapes_unchecked")
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(**{"num_hiddens": 24, "num_heads": 4, **options})


@pytest.mark.usefixtures("shapes_unchecked")
def test_wrong_calls_are_refused() -> None:
    X = torch.zeros(2, 3, 24)
    layer = MultiHeadAttention(24, 4)
    with pytest.raises(ValueError, match=r"mask: expected a shape that broadcasts to \(2, 4, 3, 3\), got \(2, 1, 3\)"):
        layer(X, X, X, torch.tensor([3, 2]), mask=torch.ones(2, 1, 3, dtype=torch.bool))
    with pytest.raises(ValueError, match="mask: expected booleans"):
        layer(X, X, X, torch.tensor([3, 2]), mask=torch.ones(1, 1, 1, 3))
    with pytest.raises(ValueError, match=r"bias: expected a shape that broadcasts to \(2, 4, 3, 3\), got \(4, 3, 2\)"):
        layer(X, X, X, bias=torch.zeros(4, 3, 2))
    for options in ({"window": 2}, {"positions": ALiBi()}):
        with pytest.raises(ValueError, match="num_keys: expected at least num_queries=3, got 2"):
            MultiHeadAttention(24, 4, **options)(X, X[:, :2], X[:, :2])
    with pytest.raises(ValueError, match="expected at least 0, with as many keys as queries or more, got -1"):
        MultiHeadAttention(24, 4, positions=Rotary())(X, X[:, :2], X[:, :2])
    with pytest.raises(ValueError, match=r"expected \(batch, heads, n, d\) with an even d"):
        MultiHeadAttention(20, 4, positions=Rotary())(X[..., :20], X[..., :20], X[..., :20])
