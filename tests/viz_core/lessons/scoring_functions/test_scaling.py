"""Why 1/sqrt(d): variances of dot products, and how sharp softmax gets."""

from __future__ import annotations

import math

import pytest
import torch

from viz_core.lessons.scoring_functions.scaling import (
    QUANTILES,
    dot_products,
    measure_width,
    query_scores,
    sharpness,
    variance_error_allowed,
)


@pytest.mark.parametrize("d", [1, 2, 7, 64, 1024])
@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_the_variance_is_the_width(d: int, seed: int) -> None:
    products = dot_products(d, 4096, seed)
    assert abs(float(products.var()) / d - 1) <= variance_error_allowed(d, 4096)
    assert abs(float(products.mean())) <= 6 * math.sqrt(d / 4096)


def test_the_allowance_is_six_standard_errors() -> None:
    """300 samples of 200 products: the spread of their variances is what the formula says."""
    for d in (1, 16):
        variances = torch.stack([dot_products(d, 200, seed).var() / d for seed in range(300)])
        assert float(variances.std()) == pytest.approx(variance_error_allowed(d, 200) / 6, rel=0.25)


def test_sharpness_worked_by_hand() -> None:
    """Scores (ln 3, 0): weights 3/4 and 1/4, entropy 0.811278 bits; keys 1 apart: gradients 3/16 and -3/16."""
    one = sharpness(torch.tensor([[math.log(3.0), 0.0]]), torch.tensor([[[math.log(3.0)], [math.log(3.0) - 1]]]))
    assert one.entropy == pytest.approx(0.811278, abs=1e-6)
    assert one.largest == pytest.approx(0.75)
    assert one.median_gradient == pytest.approx(3 / 16 * math.sqrt(2))
    even = sharpness(torch.zeros(2, 8), torch.zeros(2, 8, 1))
    assert (even.entropy, even.largest) == (pytest.approx(3.0), pytest.approx(0.125))


def test_wide_vectors_sharpen_softmax_unless_scores_are_scaled() -> None:
    narrow, wide = measure_width(4, 16), measure_width(1024, 16)
    assert wide.plain.entropy < 0.25 < 1.5 < narrow.plain.entropy
    assert wide.plain.largest > 0.9
    assert wide.plain.median_gradient < 0.1 < 0.25 < wide.scaled.median_gradient
    assert wide.scaled.entropy == pytest.approx(narrow.scaled.entropy, abs=0.15)
    assert wide.scaled.largest < 0.35


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


def test_at_width_1_real_queries_are_less_sure_than_independent_pairs() -> None:
    """Half of all queries are shorter than 0.67 and tell their keys hardly apart: 3.515 bits, not 3.283."""
    real = measure_width(1, 16).plain.entropy
    pairs = sharpness(dot_products(1, 4096).reshape(-1, 16), torch.zeros(256, 16, 1)).entropy
    many = sharpness(*query_scores(1, 20_000, 16, seed=7)).entropy
    assert many == pytest.approx(3.515, abs=0.02)
    assert real == pytest.approx(many, abs=0.15)
    assert pairs == pytest.approx(3.283, abs=0.001)


@pytest.mark.parametrize("divisor", [1.0, 2.0])
def test_the_gradient_that_reaches_a_query_is_torch_s(divisor: float) -> None:
    generator = torch.Generator().manual_seed(5)
    query, keys = torch.randn(4, generator=generator), torch.randn(6, 4, generator=generator)
    jacobian = torch.autograd.functional.jacobian(lambda q: (keys @ q / divisor).softmax(dim=0), query)
    made = sharpness((keys @ query)[None], keys[None], divisor)
    assert made.median_gradient == pytest.approx(float(jacobian.norm()), rel=1e-5)


def test_the_division_helps_the_gradient_at_large_widths_only() -> None:
    """At d = 64 more reaches a query undivided, 0.8 against 0.3; from 512 on its median collapses, to below 0.02."""
    widths = {d: measure_width(d, 16) for d in (1, 64, 512, 1024)}
    helps = [width.scaled.median_gradient > width.plain.median_gradient for width in widths.values()]
    assert helps == [False, False, True, True]
    assert widths[64].plain.median_gradient == pytest.approx(0.81, abs=0.1)
    assert widths[64].scaled.median_gradient == pytest.approx(0.30, abs=0.02)
    assert widths[512].plain.median_gradient < 0.02 < 0.25 < widths[512].scaled.median_gradient
