"""The proof of the relative projection: hand-worked numbers, brute force, and residuals that can fail."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from viz_core.lessons.relative_projection import proof
from viz_core.lessons.relative_projection.proof import (
    composition_residual,
    projection_residual,
    proof_lines,
    rotation_spread,
    rounding_bound,
    transpose_residual,
)
from viz_core.positional import relative_projection

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


@settings(max_examples=60)
@given(offset=steps, position=st.integers(-1000, 1000), d=even_widths, data=st.data(), dtype=st.sampled_from(TYPES))
def test_every_line_holds_within_rounding(
    offset: int, position: int, d: int, data: st.DataObject, dtype: torch.dtype
) -> None:
    pair = data.draw(st.integers(0, d // 2 - 1))
    lines = proof_lines(offset, position, pair, d, dtype=dtype)
    angle = (position + offset) * 10000.0 ** (-2 * pair / d)
    bound = rounding_bound(abs(position) + abs(offset), dtype)
    assert all(line.residual <= bound for line in lines)
    assert lines[-1].result == pytest.approx((math.sin(angle), math.cos(angle)), abs=bound)


def test_a_wrong_sign_in_the_matrix_fails_where_angles_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "relative_projection", lambda *arguments: relative_projection(*arguments).T)
    lines = {line.name: line.residual for line in proof_lines(5, 3, 1, 4, base=100.0)}
    assert lines["addition"] > 0.1
    assert projection_residual(5, 4, torch.arange(9), 100.0).max() > 0.1
    assert rotation_spread(5, 4, torch.arange(9), 100.0) > 0.1


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


def test_rounding_bound_by_hand() -> None:
    assert rounding_bound(0, torch.float16) == 4 / 1024
    assert rounding_bound(4) == 8 * 2**-52


def test_refuses_odd_widths() -> None:
    with pytest.raises(ValueError, match="even number, got 3"):
        proof_lines(1, 0, 0, 3)
    with pytest.raises(ValueError, match="even number, got 3"):
        projection_residual(1, 3, torch.arange(4))
