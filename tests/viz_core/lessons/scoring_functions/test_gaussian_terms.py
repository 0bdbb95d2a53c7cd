"""The Gaussian kernel's exponent in three terms, and the one that cancels."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from viz_core.lessons.scoring_functions.scaling import gaussian_scores, gaussian_terms, to_one_length


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


def test_a_key_at_the_origin_stays_there() -> None:
    keys = to_one_length(torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
    assert keys[0].tolist() == [0.0, 0.0]
    torch.testing.assert_close(keys[1], torch.tensor([3.0, 4.0]) * (0.5**0.5))
