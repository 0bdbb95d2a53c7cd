"""Masked softmax and multi-head attention, against plain algebra and torch's own module."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from viz_core.attention import MultiHeadAttention, length_mask, masked_softmax
from viz_core.positional import PositionScheme, Rotary
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


def test_the_books_layer_has_no_other_parameters() -> None:
    """Default options change nothing: the same names, the same numbers."""
    plain, changed = MultiHeadAttention(24, 4), MultiHeadAttention(24, 4, num_key_heads=4, positions=PositionScheme())
    assert list(plain.state_dict()) == ["W_q.weight", "W_k.weight", "W_v.weight", "W_o.weight"]
    changed.load_state_dict(plain.state_dict(), strict=True)
    X = torch.randn(2, 5, 24)
    assert torch.equal(plain(X, X, X), changed(X, X, X))
    MultiHeadAttention(24, 4, window=2, softcap=1.0, positions=Rotary()).load_state_dict(plain.state_dict())
