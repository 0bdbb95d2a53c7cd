"""Sinusoidal tables, the relative projection step by step, and position schemes, against loops."""

import math
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from viz_core.lessons.position_embeddings.order import SharedLayer, offset_spread, order_changes
from viz_core.lessons.position_embeddings.scheme_parts import layer_terms, rotary_products, rotary_shift_residual
from viz_core.lessons.relative_projection import (
    composition_residual,
    projection_residual,
    proof_lines,
    rotation_spread,
    rounding_bound,
    transpose_residual,
)
from viz_core.lessons.sinusoidal_encoding import nearest_rows, norm_error, offset_error, paired, wavelength_error
from viz_core.positional import SCHEMES, apply_rotary, sinusoidal_table
from viz_core.positional.entry import SchemeEntry, SchemeSizes
from viz_core.positional.t5 import t5_bucket_ranges
from viz_core.pretrained.token_vectors import shuffled_order

TYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
even_widths = st.integers(1, 12).map(lambda pairs: 2 * pairs)
steps = st.integers(-100, 100)


def test_the_lines_by_hand() -> None:
    """d = 4, base 100: omega_1 = 0.1. From position 3 by 5: angles 0.3, 0.5 and 0.8."""
    product, written, addition, result = proof_lines(5, 3, 1, 4, base=100.0)
    assert [line.name for line in (product, written, addition, result)] == ["product", "written", "addition", "result"]
    expected = {"cos_a": 0.877583, "sin_a": 0.479426, "sin_i": 0.295520, "cos_i": 0.955336}
    assert product.numbers == pytest.approx(expected, abs=5e-7)
    assert addition.numbers == pytest.approx({"start": 0.3, "turn": 0.5, "end": 0.8})
    for line in (product, written, addition, result):
        assert line.result == pytest.approx((0.717356, 0.696707), abs=5e-7)  # sin 0.8, cos 0.8
        assert line.residual <= rounding_bound(8)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("offset", [-7, 0, 5])
def test_residual_is_that_of_a_double_loop(offset: int, dtype: torch.dtype) -> None:
    """One position and one dimension at a time, in Python floats; only the rounding of dtype is torch's."""

    def rounded(value: float) -> float:
        return float(torch.tensor(value, dtype=torch.float64).to(dtype))

    def entry(position: int, column: int) -> float:
        angle = position * 100.0 ** (-2 * (column // 2) / 6)
        return rounded(math.cos(angle) if column % 2 else math.sin(angle))

    residual = projection_residual(offset, 6, torch.arange(20), 100.0, dtype)
    for i in range(20):
        worst = 0.0
        for column in range(6):
            pair = column // 2
            sin_a, cos_a, sin_i, cos_i = (entry(p, 2 * pair + k) for p in (offset, i) for k in (0, 1))
            rotated = cos_a * cos_i - sin_a * sin_i if column % 2 else cos_a * sin_i + sin_a * cos_i
            worst = max(worst, abs(rotated - entry(i + offset, column)))
        assert residual[i].item() == pytest.approx(worst, abs=1.5 * torch.finfo(dtype).eps)


@settings(max_examples=40)
@given(offset=steps, second=steps, d=even_widths, dtype=st.sampled_from(TYPES))
def test_claims_hold_within_rounding(offset: int, second: int, d: int, dtype: torch.dtype) -> None:
    positions = torch.arange(1000)
    bound = rounding_bound(999 + abs(offset), dtype)
    assert projection_residual(offset, d, positions, dtype=dtype).max() <= bound
    assert rotation_spread(offset, d, positions, dtype=dtype) <= bound
    assert composition_residual(offset, second, d, dtype=dtype) <= rounding_bound(abs(offset) + abs(second), dtype)
    assert transpose_residual(offset, d, dtype=dtype) == 0


sizes = st.tuples(st.integers(2, 40), st.integers(2, 33), st.sampled_from([1.0, 2.0, 100.0, 10000.0, 1e6]))


def table(n: int, d: int, base: float = 10000.0) -> torch.Tensor:
    return sinusoidal_table(n, d, base, dtype=torch.float64)


@settings(max_examples=60)
@given(sizes)
def test_all_claims_hold_for_every_table(size: tuple[int, int, float]) -> None:
    n, d, base = size
    P = table(n, d, base)
    assert norm_error(P, base) < 1e-10
    assert wavelength_error(P, base) < 1e-9
    assert offset_error(paired(P)) < 1e-10
    assert nearest_rows(P).distance > 1e-6


def test_broken_tables_fail_their_claims() -> None:
    P = table(60, 32)
    wrong_cell = P.clone()
    wrong_cell[30, 6] += 0.01
    assert norm_error(wrong_cell) > 1e-3
    assert offset_error(wrong_cell) > 1e-3
    assert wavelength_error(wrong_cell) > 1e-6
    assert wavelength_error(P, base=9000.0) > 1e-3
    assert nearest_rows(torch.cat([P, P[:1]])) == (60, 0.0)
    learned = torch.randn(20, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert offset_error(learned) > 0.1


@settings(max_examples=8)
@given(n=st.integers(2, 12), heads=st.sampled_from([1, 2, 4]), seed=st.integers(0, 99))
def test_order_matters_with_every_scheme_and_without_positions_it_does_not(n: int, heads: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    s = SharedLayer(torch.randn(n, 32, generator=generator), SchemeSizes(n, 32, heads, 1, n), seed=seed)
    order = shuffled_order([str(i) for i in range(n)], seed)
    for scheme in SCHEMES:
        change = order_changes(scheme, s, order).max()
        ordered = bool((order != torch.arange(n)).any()) and scheme.depends_on != "nothing"
        backwards = scheme.depends_on == "distance" and torch.equal(order, torch.arange(n).flip(0))
        assert change > 1e-3 if ordered and not backwards else change < 1e-5, scheme.name


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.name)
def test_an_offset_has_one_score_where_positions_count_by_offset_alone(scheme: SchemeEntry) -> None:
    s = SharedLayer(torch.randn(9, 32), SchemeSizes(9, 32, 2, 1, 9)).one_word()
    spread = offset_spread(s.scores(scheme))
    assert spread > 0.1 if scheme.depends_on == "position" else spread < 1e-5  # a grid of one row is a line


def test_grid_terms_add_up_to_what_the_layer_adds() -> None:
    layer = SharedLayer(torch.randn(6, 32), SchemeSizes(6, 32, 2, 2, 3))
    for head, row, column in product(range(2), range(2), range(3)):
        terms, added = layer_terms(layer, row, column, head)
        torch.testing.assert_close(terms.total, added, atol=1e-5, rtol=0)
        assert (terms.row_offsets[1, 2], terms.column_offsets[1, 2]) == (1 - row, 2 - column)
        assert (terms.row_term == terms.row_term[:, :1]).all()


@settings(max_examples=30)
@given(d=st.sampled_from([2, 4, 16, 64]), base=st.sampled_from([2.0, 100.0, 10000.0]), seed=st.integers(0, 999))
def test_products_know_only_offsets(d: int, base: float, seed: int) -> None:
    q, k = torch.randn(2, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    offsets = torch.arange(-50, 51)
    assert rotary_shift_residual(q, k, offsets, base) < 1e-9
    one = rotary_products(q, k, torch.tensor([5]), base, start=3.0).item()
    turned = [apply_rotary(x.reshape(1, 1, 1, d), torch.tensor([p]), base).flatten() for x, p in ((q, 3), (k, 8))]
    assert one == pytest.approx((turned[0] @ turned[1]).item())


def test_t5_ranges_as_published() -> None:
    expected = [*((i, i, i) for i in range(8)), (8, 8, 11), (9, 12, 15), (10, 16, 22), (11, 23, 31), (12, 32, 45)]
    assert t5_bucket_ranges() == (*expected, (13, 46, 63), (14, 64, 90), (15, 91, None))
