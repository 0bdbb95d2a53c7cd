"""What decides the book's exercises of section 11.1, by hand and by other ways."""

from __future__ import annotations

import math

import pytest
import torch

from viz_core.lessons.queries_keys_values.exercises import (
    channel_gates,
    click_loss,
    count_matching_limits,
    edit_kernels,
    edit_weights,
    query_jacobian,
    ranks_while_learning,
    taken_from_others,
    weighted_covariance,
)


def test_two_keys_within_one_edit_share_the_weight() -> None:
    """Li, Lo and Hu are 0, 1 and 2 edits from Li."""
    weights = {
        name: edit_weights("Li", ["Li", "Lo", "Hu"], kernel).tolist() for name, kernel in edit_kernels(1).items()
    }
    assert weights["boxcar"] == [0.5, 0.5, 0]
    assert weights["cold"] == pytest.approx([1, 0, 0], abs=1e-12)
    wide = [math.exp(-(edits**2) / (2 * 1.5**2)) for edits in range(3)]
    assert weights["wide"] == pytest.approx([each / sum(wide) for each in wide])


@pytest.mark.parametrize("temperature", [0.2, 1.0, 5.0])
def test_the_slope_is_the_covariance_that_torch_computes(temperature: float) -> None:
    keys, query = torch.randn(5, 3, dtype=torch.float64), torch.randn(3, dtype=torch.float64)
    weights = (keys @ query / temperature).softmax(dim=0)
    torch.testing.assert_close(
        weighted_covariance(query, keys, temperature), torch.cov(keys.T, correction=0, aweights=weights)
    )
    torch.testing.assert_close(
        query_jacobian(query, keys, temperature), weighted_covariance(query, keys, temperature) / temperature
    )


def test_a_click_by_hand() -> None:
    """Two documents with equal weight: the loss is log 2, and the query moves along half their difference."""
    documents, query = torch.eye(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64)
    assert float(click_loss(query, documents, 0)) == pytest.approx(math.log(2))
    gradient = torch.func.grad(lambda each: click_loss(each, documents, 0))(query)
    assert gradient.tolist() == [-0.5, 0.5]
    assert ranks_while_learning(torch.tensor([0.0, 1.0], dtype=torch.float64), documents, 0, steps=8)[::8] == [2, 1]
    assert ranks_while_learning(torch.zeros(2, dtype=torch.float64), documents, 0, steps=0) == [2], "a tie for the last"


def test_gates_take_nothing_and_a_softmax_takes_all_it_gives() -> None:
    scores = torch.zeros(3)
    assert channel_gates(scores).tolist() == [0.5] * 3
    assert taken_from_others(scores, by_softmax=False) == 0
    assert taken_from_others(scores, by_softmax=True) == pytest.approx(2 / 3 - 2 / (2 + math.e**2))


def test_limits_at_which_a_kernel_is_the_lookup() -> None:
    """By hand: at 0 edits only the key itself is found, at 1 both; a wide Gaussian is neither (1, 0) nor (1/2, 1/2)."""
    assert count_matching_limits("ab", ["ab", "abc"], range(2)) == {"boxcar": 2, "cold": 1, "wide": 0}
