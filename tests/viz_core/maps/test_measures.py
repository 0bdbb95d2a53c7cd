import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from viz_core.maps.measures import (
    attention_entropy,
    diagonal_mass,
    induction_mass,
    induction_targets,
    target_mass,
    total_variation,
)


def test_entropy_of_rows_worked_by_hand():
    weights = torch.tensor(
        [
            [1.0, 0.0, 0.0, 0.0],  # one key: 0
            [0.25, 0.25, 0.25, 0.25],  # all alike: log2 4 = 2
            [0.5, 0.25, 0.25, 0.0],  # 1/2 * 1 + 2 * 1/4 * 2 = 1.5
            [0.75, 0.25, 0.0, 0.0],  # 3/4 log2(4/3) + 1/4 * 2 = 0.811278
        ]
    )
    torch.testing.assert_close(attention_entropy(weights), torch.tensor([0.0, 2.0, 1.5, 0.811278]))


def test_entropy_keeps_leading_axes_and_leaves_its_input_alone():
    weights = torch.rand(2, 3, 4, 5).softmax(dim=-1)
    before = weights.clone()
    entropy = attention_entropy(weights)
    assert entropy.shape == (2, 3, 4)
    assert torch.equal(weights, before)
    assert (entropy <= math.log2(5) + 1e-6).all()


def test_entropy_of_masked_and_certain_rows_is_a_positive_zero():
    entropy = attention_entropy(torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0000001, 0.0]]))
    assert entropy.tolist() == [0.0, 0.0, 0.0]
    assert not torch.signbit(entropy).any()


def test_entropy_refuses_negative_weights_and_says_which():
    with pytest.raises(ValueError, match=r"none below 0, got -0\.5"):
        attention_entropy(torch.tensor([[1.5, -0.5]]))


def test_entropy_of_no_queries_is_empty():
    assert attention_entropy(torch.zeros(2, 0, 3)).shape == (2, 0)


def test_diagonal_mass_worked_by_hand():
    identity, uniform = torch.eye(4), torch.full((4, 4), 0.25)
    previous = torch.eye(4).roll(1, dims=0)
    mass = diagonal_mass(torch.stack([identity, uniform, previous]))
    torch.testing.assert_close(mass, torch.tensor([1.0, 0.25, 0.0]))


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4), (0, 0)])
def test_diagonal_mass_needs_as_many_queries_as_keys(shape, shapes_unchecked):
    with pytest.raises(ValueError, match="as many queries as keys"):
        diagonal_mass(torch.zeros(shape))


def test_induction_is_the_weight_on_what_followed_the_same_token():
    weights = torch.tensor(
        [
            [1.0, 0.0, 0.0, 0.0, 0.0],
            [0.5, 0.5, 0.0, 0.0, 0.0],
            [0.1, 0.6, 0.3, 0.0, 0.0],  # a again: after the first a came b, at 1
            [0.0, 0.2, 0.3, 0.5, 0.0],  # b again: after the first b came a, at 2
            [0.0, 0.4, 0.1, 0.2, 0.3],  # a for the third time: b at 1 and at 3
        ]
    )
    found = induction_mass(torch.stack([weights, torch.eye(5)]), "ababa")
    torch.testing.assert_close(found, torch.tensor([(0.6 + 0.3 + 0.6) / 3, 0.0]))


@pytest.mark.parametrize(("tokens", "says"), [("abc", "that all differ"), ("ab", "expected 2 queries and keys")])
def test_induction_needs_a_token_that_comes_twice(tokens, says):
    with pytest.raises(ValueError, match=says):
        induction_mass(torch.eye(3), tokens)


@given(st.lists(st.sampled_from("ab"), max_size=7))
def test_induction_looks_where_its_definition_says(tokens):
    n = len(tokens)
    expected = [[0 < k <= q and tokens[k - 1] == tokens[q] for k in range(n)] for q in range(n)]
    assert induction_targets(tokens).tolist() == expected


def test_target_mass_is_the_mean_over_queries_that_have_a_target(shapes_unchecked):
    weights = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]])
    targets = torch.tensor([[True, False, True], [False, False, False]])
    assert target_mass(weights, targets).item() == pytest.approx(0.7)
    assert target_mass(weights.expand(4, 2, 3), targets).shape == (4,)
    with pytest.raises(ValueError, match="a query that has one, got none"):
        target_mass(weights, ~torch.ones(2, 3, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"expected \(3, 3\) as the targets are, got \(2, 3\)"):
        target_mass(weights, torch.ones(3, 3, dtype=torch.bool))


def test_total_variation_by_hand(shapes_unchecked: None) -> None:
    one, other = torch.tensor([[1.0, 0.0], [0.5, 0.5]]), torch.tensor([[0.0, 1.0], [0.25, 0.75]])
    assert total_variation(one, other).item() == pytest.approx((1 + 0.25) / 2)
    assert total_variation(torch.stack([one, other]), torch.stack([one, one])).tolist() == [0.0, pytest.approx(0.625)]
    with pytest.raises(ValueError, match=r"two maps of one size, got \(2, 2\) and \(2, 3\)"):
        total_variation(one, torch.zeros(2, 3))
