"""What each way of masking really does: zeros, NaN, an even spread, a leak, an overflow, a changed input."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from viz_core.attention import masked_softmax
from viz_core.lessons.scoring_functions.mask_variants import (
    MASK_VARIANTS,
    MaskRun,
    run_all,
    run_variant,
    weight_gradient,
    weight_gradient_by_formula,
)

BY_NAME = {variant.name: variant for variant in MASK_VARIANTS}
ROW = torch.tensor([0.0, 1.0, 7.0, -3.0])


def run(name: str, length: int, scores: torch.Tensor = ROW) -> MaskRun:
    return run_variant(BY_NAME[name], scores, length)


def test_every_variant_at_every_length() -> None:
    runs = run_all(ROW)
    assert list(runs) == [variant.name for variant in MASK_VARIANTS]
    assert all([r.length for r in row] == [0, 1, 2, 3, 4] for row in runs.values())
    verdicts = {name: [r.verdict for r in row] for name, row in runs.items()}
    assert verdicts == {
        "guarded-float32": ["fine"] * 5,
        "guarded-float16": ["fine"] * 5,
        "bare-float32": ["nan"] + ["fine"] * 4,
        "book-float32": ["leak"] + ["fine"] * 4,
        "book-float16": ["nan"] + ["fine"] * 4,
        "filled-float16": ["refused"] * 5,
    }


@pytest.mark.parametrize("name", ["guarded-float32", "guarded-float16", "bare-float32", "book-float32", "book-float16"])
def test_the_published_row(name: str) -> None:
    weights = run(name, 2).weights
    assert weights is not None
    torch.testing.assert_close(weights, torch.tensor([0.2689, 0.7311, 0.0, 0.0]), atol=5e-4, rtol=0)


def test_an_empty_row_is_zeros_even_or_nan() -> None:
    rows = {name: run(f"{name}-float32", 0) for name in ("guarded", "book", "bare")}
    expected = {"guarded": [0.0] * 4, "book": [0.25] * 4, "bare": [math.nan] * 4}
    for name, row in rows.items():
        torch.testing.assert_close(row.weights, torch.tensor(expected[name]), equal_nan=True)
    assert (rows["book"].leak, math.isnan(rows["bare"].leak)) == (1.0, True)


@pytest.mark.parametrize(("name", "writes"), [("book-float32", True), ("book-float16", True), ("bare-float32", False)])
def test_who_writes_into_the_input(name: str, writes: bool) -> None:
    before = ROW.clone()
    assert [run(name, length).wrote for length in range(5)] == [writes] * 4 + [False]  # nothing to mask at length 4
    assert torch.equal(ROW, before)  # only the copy it was given


def test_a_million_leaks_where_valid_scores_lie_lower() -> None:
    scores = torch.tensor([-2e7, 5e6, 1e7, 0.0])
    leaked = run("book-float32", 1, scores)
    assert leaked.verdict == "leak"
    assert leaked.leak == pytest.approx(1.0)
    assert leaked.weights is not None
    assert leaked.weights[0] == 0.0  # the one key it may see gets nothing
    guarded = run("guarded-float32", 1, scores)
    assert guarded.weights is not None
    assert guarded.weights.tolist() == [1.0, 0.0, 0.0, 0.0]


def test_which_fillers_overflow_their_type() -> None:
    assert [variant.name for variant in MASK_VARIANTS if variant.filler_overflows] == ["book-float16", "filled-float16"]


def test_torch_refuses_to_fill_half_precision_with_a_million() -> None:
    refused = run("filled-float16", 2)
    assert refused.weights is None
    assert "overflow" in refused.refusal
    assert math.isnan(refused.leak)
    assert not refused.wrote


def test_scores_past_the_range_of_float16_are_not_blamed_on_the_mask() -> None:
    scores = torch.tensor([1e6, 2e6, 0.0])
    assert run("guarded-float16", 2, scores).verdict == "overflow"
    assert run("guarded-float32", 2, scores).verdict == "fine"


def test_worked_by_hand() -> None:
    """Two equal scores: a (1 - a) = 1/4 on the key itself, -1/4 on the other, nothing behind the mask."""
    scores = torch.tensor([[[3.0, 3.0, 9.0]]])
    assert weight_gradient(scores, torch.tensor([2]), 0).tolist() == [[[0.25, -0.25, 0.0]]]


@settings(max_examples=40)
@given(st.integers(1, 3), st.integers(1, 6), st.integers(0, 5), st.integers(0, 6))
def test_formula_and_differentiation_agree(queries: int, keys: int, key: int, length: int) -> None:
    key, length = key % keys, min(length, keys)
    scores, lengths = 3 * torch.randn(2, queries, keys), torch.tensor([length, keys])
    before = scores.clone()
    gradient = weight_gradient(scores, lengths, key)
    assert torch.equal(scores, before)
    torch.testing.assert_close(
        gradient, weight_gradient_by_formula(masked_softmax(scores, lengths), key), atol=1e-6, rtol=0
    )
    torch.testing.assert_close(gradient.sum(dim=-1), torch.zeros(2, queries), atol=1e-6, rtol=0)
    assert torch.equal(gradient[0, :, length:], torch.zeros(queries, keys - length))
    assert float(gradient.max()) <= 0.25 + 1e-6


def test_it_works_where_gradients_are_off() -> None:
    with torch.no_grad():
        assert weight_gradient(torch.zeros(1, 1, 2), None, 1).tolist() == [[[-0.25, 0.25]]]
