"""Measures of the sinusoidal table against published numbers, brute force and tables that break them."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from viz_core.lessons.sinusoidal_encoding.properties import (
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

sizes = st.tuples(st.integers(2, 40), st.integers(2, 33), st.sampled_from([1.0, 2.0, 100.0, 10000.0, 1e6]))


def table(n: int, d: int, base: float = 10000.0) -> torch.Tensor:
    return sinusoidal_table(n, d, base, dtype=torch.float64)


@pytest.mark.parametrize(
    ("d", "column", "wavelength"),
    [(32, 6, 35.333), (32, 7, 35.333), (32, 8, 62.832), (32, 9, 62.832), (512, 511, 60611)],
)
def test_published_wavelengths(d: int, column: int, wavelength: float) -> None:
    assert float(wavelengths(d)[column]) == pytest.approx(wavelength, rel=2e-5)


def test_an_odd_width_has_a_wavelength_for_its_lone_sine() -> None:
    assert wavelengths(5).shape == (5,)
    assert float(wavelengths(5)[4]) == pytest.approx(2 * math.pi * 10000 ** (4 / 5))


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


def test_squared_norms_worked_by_hand() -> None:
    assert expected_squared_norms(3, 32).tolist() == [16, 16, 16]
    # Width 3: one pair, and a lone sine that turns by 10000^(-2/3).
    expected = [1 + math.sin(i * 10000 ** (-2 / 3)) ** 2 for i in range(3)]
    assert expected_squared_norms(3, 3).tolist() == pytest.approx(expected)


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


@settings(max_examples=40)
@given(sizes)
def test_offset_error_is_that_of_a_double_loop(size: tuple[int, int, float]) -> None:
    n, d, base = size
    P = table(n, d, base)
    P[n // 2] *= 1.5  # so that there is an error to find
    worst = max(abs(float(P[i] @ P[j] - P[0] @ P[abs(i - j)])) for i in range(n) for j in range(n))
    assert offset_error(P) == pytest.approx(worst, rel=1e-9)


@settings(max_examples=40)
@given(sizes)
def test_nearest_rows_are_those_of_a_double_loop(size: tuple[int, int, float]) -> None:
    n, d, base = size
    P = table(n, d, base)
    apart = {(i, j): float((P[i] - P[j]).norm()) for i in range(n) for j in range(i)}
    offset, distance = nearest_rows(P)
    assert distance == pytest.approx(min(apart.values()), rel=1e-9, abs=1e-12)
    assert any(i - j == offset and each == pytest.approx(distance) for (i, j), each in apart.items())


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


def test_steps_by_hand() -> None:
    P = torch.tensor([[0.0, 5.0], [1.0, 4.5], [-1.0, 4.0]], dtype=torch.float64)
    assert largest_step(P, [0, 1]) == 2
    assert largest_step(P, [1]) == 0.5
    assert largest_step(P[:1], [0]) == 0
