"""Orthogonalisation against the singular value decomposition, and one step by hand."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from recipes.muon import Muon, orthogonalise


@given(rows=st.integers(1, 9), columns=st.integers(1, 9), seed=st.integers(0, 99))
def test_singular_vectors_stay_and_singular_values_come_near_one(rows: int, columns: int, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    k = min(rows, columns)
    U = torch.linalg.qr(torch.randn(rows, k, generator=draw, dtype=torch.float64)).Q
    V = torch.linalg.qr(torch.randn(columns, k, generator=draw, dtype=torch.float64)).Q
    S = 0.2 + torch.rand(k, generator=draw, dtype=torch.float64)
    made = U.T @ orthogonalise(((U * S) @ V.T)[None])[0] @ V
    values = made.diagonal()
    torch.testing.assert_close(made, torch.diag(values), atol=1e-9, rtol=0)
    assert values.min() > 0.6
    assert values.max() < 1.3


def test_a_matrix_without_a_gradient_of_any_size_stays_finite() -> None:
    assert torch.equal(orthogonalise(torch.zeros(2, 3, 5)), torch.zeros(2, 3, 5))


def test_the_first_step_by_hand() -> None:
    """A 1 x 1 matrix: the sign of the gradient, times the iteration's own value at 1."""
    p = nn.Parameter(torch.tensor([[2.0]]))
    p.grad = torch.tensor([[-7.0]])
    x = -1.0
    for _ in range(5):
        x = 3.4445 * x - 4.7750 * x**3 + 2.0315 * x**5
    Muon([p], lr=0.1, momentum=0.95, weight_decay=0.5, dtype=torch.float32).step()
    assert p.item() == pytest.approx(2.0 * (1 - 0.1 * 0.5) - 0.1 * 0.2 * math.sqrt(1) * x, rel=1e-5)
