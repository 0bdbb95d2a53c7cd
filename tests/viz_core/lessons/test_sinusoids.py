"""Properties of the sinusoidal table, and the relative projection's proof, step by step."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from viz_core.lessons.relative_projection import (
    composition_residual,
    projection_residual,
    proof_lines,
    rotation_spread,
    rounding_bound,
    transpose_residual,
)
from viz_core.lessons.sinusoidal_encoding import (
    binary_code,
    doubling_columns,
    expected_squared_norms,
    largest_step,
    nearest_rows,
    norm_error,
    offset_error,
    paired,
    wavelength_error,
    wavelengths,
)
from viz_core.positional import sinusoidal_table

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


def test_a_lone_sine_breaks_similarity_by_offset_and_the_error_says_so() -> None:
    """d = 3: sin(i w) sin(j w) is between -1 and 1, and 0 with position 0."""
    P = table(2000, 3)
    assert offset_error(paired(P)) < 1e-10
    assert offset_error(P) == pytest.approx(1.0, abs=0.01)
    assert offset_error(table(2000, 4)) < 1e-10


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


def test_squared_norms_and_steps_by_hand() -> None:
    assert expected_squared_norms(3, 32).tolist() == [16, 16, 16]
    lone = [1 + math.sin(i * 10000 ** (-2 / 3)) ** 2 for i in range(3)]  # width 3: one pair and a lone sine
    assert expected_squared_norms(3, 3).tolist() == pytest.approx(lone)
    assert largest_step(torch.tensor([[0.0, 5.0], [1.0, 4.5], [-1.0, 4.0]]), [0, 1]) == 2


@settings(max_examples=40)
@given(sizes)
def test_offset_error_is_that_of_a_double_loop(size: tuple[int, int, float]) -> None:
    n, d, base = size
    P = table(n, d, base)
    P[n // 2] *= 1.5  # so that there is an error to find
    worst = max(abs(float(P[i] @ P[j] - P[0] @ P[abs(i - j)])) for i in range(n) for j in range(n))
    assert offset_error(P) == pytest.approx(worst, rel=1e-9)


def test_binary_code_is_the_books_from_the_lowest_bit() -> None:
    words = ["".join(str(bit) for bit in row[::-1]) for row in binary_code(8).tolist()]
    assert words == ["000", "001", "010", "011", "100", "101", "110", "111"]
    assert binary_code(1).tolist() == [[0]]
    assert binary_code(33).shape == (33, 6)


@settings(max_examples=60)
@given(d=st.integers(2, 300), base=st.sampled_from([1.0, 4.0, 100.0, 10000.0, 1e6]))
def test_each_chosen_column_is_the_nearest_to_its_bit(d: int, base: float) -> None:
    columns = doubling_columns(6, d, base)
    chosen = [column for column in columns if column is not None]
    assert columns[0] == 0
    assert len(set(chosen)) == len(chosen)
    for bit, column in enumerate(columns):
        octave = [math.log2(float(length) / (2 * math.pi)) for length in wavelengths(d, base)[::2]]
        if column is None:
            assert all(abs(o - bit) >= 0.5 for o in octave)
        else:
            assert column % 2 == 0
            assert abs(octave[column // 2] - bit) == pytest.approx(min(abs(o - bit) for o in octave))
