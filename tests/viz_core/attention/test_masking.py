"""Masked softmax against numbers worked by hand and a sum over plain Python floats."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from viz_core.attention import length_mask, masked_softmax


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
def test_refuses_what_does_not_fit() -> None:
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
