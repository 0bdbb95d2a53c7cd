"""What single schemes are shown with: rotary decay, grid terms, T5's ranges, the residuals of claims."""

from __future__ import annotations

import cmath
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from viz_core.lessons.position_embeddings import scheme_proofs as proofs
from viz_core.lessons.position_embeddings.rotary_decay import (
    mean_size,
    rotary_bound,
    rotary_bound_ratio,
    rotary_products,
    rotary_shift_residual,
    su_bound,
)
from viz_core.lessons.position_embeddings.scheme_parts import grid_terms
from viz_core.positional import RelativePositionEmbedding2d, apply_rotary, t5_relative_position_bucket
from viz_core.positional.t5 import t5_bucket_ranges


def doubles(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("d", [2, 6, 16])
def test_both_bounds_by_loops(d: int) -> None:
    q, k = doubles(2, d, seed=d)
    h = [complex(q[i], q[i + 1]) * complex(k[i], -k[i + 1]) for i in range(0, d, 2)] + [0j]
    steps = [abs(after - before) for before, after in pairwise(h)]
    for offset in (-30, 0, 1, 7):
        sums = [abs(sum(cmath.exp(1j * offset * 10000 ** (-2 * i / d)) for i in range(j + 1))) for j in range(d // 2)]
        at = torch.tensor([offset])
        expected = sum(step * size for step, size in zip(steps, sums, strict=True))
        assert rotary_bound(q, k, at).item() == pytest.approx(expected)
        assert su_bound(q, k, at).item() == pytest.approx(max(steps) * sum(sums))


def test_what_is_drawn_for_equal_components_lies_within_its_bound_and_touches_it_at_0() -> None:
    """The sum of |S_j| divided by its own start, as Su 2021 draws it, is no bound: 0.45 at offset 100, below 0.56."""
    ones = torch.full((64,), 1 / 8, dtype=torch.float64)
    offsets = torch.arange(-200, 201)
    products, bound = rotary_products(ones, ones, offsets), rotary_bound(ones, ones, offsets)
    assert (products.abs() <= bound + 1e-12).all()
    assert bound[200].item() == pytest.approx(1) == products[200].item()
    relative = su_bound(ones, ones, offsets) / su_bound(ones, ones, torch.tensor([0]))
    assert relative[300].item() == pytest.approx(0.45, abs=0.01)
    assert products[300].item() == pytest.approx(0.56, abs=0.01)


def test_the_mean_size_at_some_distances() -> None:
    assert mean_size(torch.tensor([-8.0, 3, 1, -5]), torch.tensor([-2, 1, 0, 3]), 2, 3) == 6.5


@settings(max_examples=30)
@given(d=st.sampled_from([2, 4, 16, 64]), base=st.sampled_from([2.0, 100.0, 10000.0]), seed=st.integers(0, 999))
def test_products_know_only_offsets_and_keep_below_the_bound(d: int, base: float, seed: int) -> None:
    q, k = doubles(2, d, seed=seed)
    offsets = torch.arange(-50, 51)
    assert rotary_shift_residual(q, k, offsets, base) < 1e-9
    assert 0 < rotary_bound_ratio(q, k, offsets, base) <= 1 + 1e-9
    assert (rotary_bound(q, k, offsets, base) <= su_bound(q, k, offsets, base) + 1e-9).all()
    one = rotary_products(q, k, torch.tensor([5]), base, start=3.0).item()
    turned = [apply_rotary(x.reshape(1, 1, 1, d), torch.tensor([p]), base).flatten() for x, p in ((q, 3), (k, 8))]
    assert one == pytest.approx((turned[0] @ turned[1]).item())


@pytest.mark.parametrize("num_heads", [None, 2])
@pytest.mark.parametrize(("height", "width"), [(1, 1), (2, 3), (4, 2)])
def test_grid_terms_add_up_to_the_layer(height: int, width: int, num_heads: int | None) -> None:
    module = RelativePositionEmbedding2d(height, width, 8, num_heads)
    q = torch.randn(2, height * width, 8)
    whole = module(q[None])[0].detach() * 8**-0.5
    for head in range(2):
        for row in range(height):
            for column in range(width):
                terms = grid_terms(q, module, row, column, head)
                expected = whole[head, row * width + column].reshape(height, width)
                torch.testing.assert_close(terms.total, expected, atol=1e-5, rtol=0)
                for i in range(height):
                    for j in range(width):
                        assert (terms.row_offsets[i, j], terms.column_offsets[i, j]) == (i - row, j - column)
                assert (terms.row_term == terms.row_term[:, :1]).all()
                assert (terms.column_term == terms.column_term[:1]).all()


def test_t5_ranges_as_published() -> None:
    expected = [*((i, i, i) for i in range(8)), (8, 8, 11), (9, 12, 15), (10, 16, 22), (11, 23, 31), (12, 32, 45)]
    assert t5_bucket_ranges() == (*expected, (13, 46, 63), (14, 64, 90), (15, 91, None))


@pytest.mark.parametrize(
    ("bidirectional", "num_buckets", "max_distance"), [(True, 8, 64), (False, 64, 64), (True, 64, 256)]
)
def test_every_distance_lies_in_the_range_of_its_bucket(
    bidirectional: bool, num_buckets: int, max_distance: int
) -> None:
    distances = torch.arange(2 * max_distance + 50)
    buckets = t5_relative_position_bucket(-distances, bidirectional, num_buckets, max_distance).tolist()
    ranges = {bucket: (low, high) for bucket, low, high in t5_bucket_ranges(bidirectional, num_buckets, max_distance)}
    for distance, bucket in enumerate(buckets):
        low, high = ranges[bucket]
        assert low <= distance <= (distance if high is None else high)


def test_residuals_of_true_claims_are_small() -> None:
    assert [proofs.skew_error(n) for n in (1, 4, 12)] == [0, 0, 0]
    assert max(proofs.slope_error(8), proofs.slope_error(16)) < 1e-15
    assert proofs.evenness_error(12, 20) < 1e-5
    assert proofs.bucket_errors() == 0


def test_residuals_see_what_is_false(monkeypatch: pytest.MonkeyPatch) -> None:
    assert proofs.row_spread(torch.tensor([[[1.0, 2], [1, 5]]])) == 3
    bias = torch.tensor([[[0.0, 1, 2, 2.5], [7, 0, 1, 2], [7, 7, 0, 1], [6, 7, 7, 0]]])
    assert proofs.clipping_spread(bias, 2) == 1  # the last row: 6 and 7 at distances 3 and 2
    assert proofs.clipping_spread(bias, 9) == 0
    monkeypatch.setattr(proofs, "PUBLISHED_BUCKETS", (0, 2, *range(2, 16)))
    assert proofs.bucket_errors() > 1
