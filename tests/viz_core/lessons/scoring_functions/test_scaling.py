"""Why 1/sqrt(d): variances of dot products, and how sharp softmax gets."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from viz_core.lessons.scoring_functions.exercises import (
    concatenation_error,
    dot_product_toy,
    drop,
    sentence_weights,
)
from viz_core.lessons.scoring_functions.mask_variants import gradient_without_delta, written_by_the_book
from viz_core.lessons.scoring_functions.scaling import (
    QUANTILES,
    dot_products,
    gaussian_scores,
    gaussian_terms,
    measure_width,
    query_scores,
    sharpness,
    to_one_length,
    variance_error_allowed,
)


@pytest.mark.parametrize("d", [1, 2, 7, 64, 1024])
@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_the_variance_is_the_width(d: int, seed: int) -> None:
    products = dot_products(d, 4096, seed)
    assert abs(float(products.var()) / d - 1) <= variance_error_allowed(d, 4096)
    assert abs(float(products.mean())) <= 6 * math.sqrt(d / 4096)


def test_sharpness_worked_by_hand() -> None:
    """Scores (ln 3, 0): weights 3/4 and 1/4, entropy 0.811278 bits; keys 1 apart: gradients 3/16 and -3/16."""
    one = sharpness(torch.tensor([[math.log(3.0), 0.0]]), torch.tensor([[[math.log(3.0)], [math.log(3.0) - 1]]]))
    assert one.entropy == pytest.approx(0.811278, abs=1e-6)
    assert one.largest == pytest.approx(0.75)
    assert one.median_gradient == pytest.approx(3 / 16 * math.sqrt(2))
    even = sharpness(torch.zeros(2, 8), torch.zeros(2, 8, 1))
    assert (even.entropy, even.largest) == (pytest.approx(3.0), pytest.approx(0.125))


def test_quantiles_are_those_of_the_sample() -> None:
    width = measure_width(16, 8, 4096, seed=3)
    products = dot_products(16, 4096, 3)
    assert width.variance == float(products.var())
    for share, quantile in zip(QUANTILES, width.quantiles, strict=True):
        assert float((products <= quantile).float().mean()) == pytest.approx(share, abs=1e-3)


def test_one_key_is_always_chosen() -> None:
    width = measure_width(64, 1)
    assert (width.plain.entropy, width.plain.largest, width.plain.median_gradient) == (0.0, 1.0, 0.0)


@pytest.mark.parametrize("d", [1, 3])
def test_scores_in_a_row_share_their_query(d: int) -> None:
    """Given its query, a row has variance |q|^2; were its pairs independent, every row would have variance d."""
    scores, _ = query_scores(d, 400, 4000, seed=1)
    queries = torch.randn(400, 1, d, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(scores.var(dim=1), queries.square().sum(dim=(1, 2)), rtol=0.15, atol=0)
    assert float(scores.var(dim=1).min()) < 0.5 * d < 2 * d < float(scores.var(dim=1).max())


@pytest.mark.parametrize("divisor", [1.0, 2.0])
def test_the_gradient_that_reaches_a_query_is_torch_s(divisor: float) -> None:
    generator = torch.Generator().manual_seed(5)
    query, keys = torch.randn(4, generator=generator), torch.randn(6, 4, generator=generator)
    jacobian = torch.autograd.functional.jacobian(lambda q: (keys @ q / divisor).softmax(dim=0), query)
    made = sharpness((keys @ query)[None], keys[None], divisor)
    assert made.median_gradient == pytest.approx(float(jacobian.norm()), rel=1e-5)


def test_worked_by_hand() -> None:
    """q = (1, 2), k = (3, -1): q . k = 1, -1/2 |k|^2 = -5, -1/2 |q|^2 = -2.5, and -1/2 |q - k|^2 = -6.5."""
    terms = gaussian_terms(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, -1.0]]))
    assert (terms.product.item(), terms.key_term.item(), terms.query_term.item()) == (1.0, -5.0, -2.5)
    assert terms.total().item() == -6.5
    assert gaussian_scores(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, -1.0]])).item() == -6.5


@settings(max_examples=30)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 7))
def test_the_terms_add_up_and_the_querys_cancels(n: int, m: int, d: int) -> None:
    queries, keys = torch.randn(n, d, dtype=torch.float64), torch.randn(m, d, dtype=torch.float64)
    terms = gaussian_terms(queries, keys)
    torch.testing.assert_close(terms.total(), gaussian_scores(queries, keys))
    whole = torch.softmax(gaussian_scores(queries, keys), dim=-1)
    torch.testing.assert_close(torch.softmax(terms.product + terms.key_term, dim=-1), whole)


def test_the_keys_own_term_does_not_cancel_unless_all_are_of_one_length() -> None:
    queries, keys = torch.randn(3, 4, dtype=torch.float64), torch.randn(5, 4, dtype=torch.float64)
    difference = torch.softmax(gaussian_scores(queries, keys), -1) - torch.softmax(
        gaussian_terms(queries, keys).product, -1
    )
    assert difference.abs().max() > 0.05
    alike = to_one_length(keys)
    torch.testing.assert_close(alike.norm(dim=1), keys.square().sum(dim=1).mean().sqrt().expand(5))
    torch.testing.assert_close(
        torch.softmax(gaussian_scores(queries, alike), -1), torch.softmax(gaussian_terms(queries, alike).product, -1)
    )


def test_three_sentences_share_their_weight_among_their_words() -> None:
    rows = [[0.25] * 4, [1 / 3] * 3 + [0], [0.5, 0.5, 0, 0]]
    assert sentence_weights().tolist() == [pytest.approx(row) for row in rows]


def test_equal_keys_give_the_mean_of_what_may_be_seen() -> None:
    toy = dot_product_toy(equal_keys=True)
    assert toy.output.shape == (2, 1, 4)
    assert toy.output.flatten().tolist() == pytest.approx([2, 3, 4, 5, 10, 11, 12, 13])
    torch.testing.assert_close(toy.dropped, toy.weights)
    random = dot_product_toy(equal_keys=False)
    assert float(random.weights[1, :6].max()) > 0.2
    assert not random.weights[0, 2:].any()


def test_dropout_keeps_the_mean_and_not_the_sum() -> None:
    generator = torch.Generator().manual_seed(0)
    weights = torch.full((2000, 4), 0.25)
    dropped = drop(weights, 0.5, generator)
    assert set(dropped.unique().tolist()) == {0.0, 0.5}
    assert float(dropped.mean()) == pytest.approx(0.25, abs=0.02)
    assert float(dropped.sum(dim=1).std()) > 0.3


def test_additive_attention_is_a_network_on_the_concatenation() -> None:
    assert concatenation_error() < 1e-6


def test_masks_done_wrong() -> None:
    scores = torch.tensor([[[1.0, 2.0, 3.0]]])
    assert written_by_the_book(scores, torch.tensor([2])) == pytest.approx(1e6 + 3)
    assert written_by_the_book(scores, None) == 0
    assert scores.tolist() == [[[1, 2, 3]]]  # a copy
    weights = scores.softmax(dim=-1)
    assert (gradient_without_delta(weights, 1) < 0).all()
