"""The experiments: deep stacks become one token, and a table learns its task."""

from __future__ import annotations

import pytest
import torch

from viz_core.lessons.position_embeddings.learn_table import (
    learn_table,
    neighbour_weights,
    offset_share,
    sinusoidal_loss,
    table_weights,
    task_loss,
)
from viz_core.lessons.position_embeddings.rank_collapse import (
    STACKS,
    collapse_curves,
    distance_to_equal_rows,
    largest_ratio,
)
from viz_core.positional import sinusoidal_table


def test_distance_by_hand() -> None:
    assert distance_to_equal_rows(torch.tensor([[1.0, 2], [1, 2], [1, 2]])) == 0
    assert distance_to_equal_rows(torch.tensor([[3.0], [-3]])) == pytest.approx(1)
    assert distance_to_equal_rows(torch.tensor([[1.0], [3]])) == pytest.approx((2 / 10) ** 0.5)


def test_equal_rows_are_the_nearest_such_matrix() -> None:
    X = torch.randn(7, 5)
    nearest = distance_to_equal_rows(X) * X.norm()
    for _ in range(20):
        row = X.mean(dim=0) + 0.1 * torch.randn(5)
        assert (X - row).norm() >= nearest


@pytest.mark.parametrize(("n", "heads"), [(2, 1), (12, 8), (40, 4)])
def test_attention_alone_collapses_and_skips_hold_it_up(n: int, heads: int) -> None:
    curves = collapse_curves(torch.randn(n, 64), 12, heads)
    assert set(curves) == set(STACKS)
    assert curves["attention"][-1] < 1e-12 < 1e-4 < curves["skip"][-1]
    assert curves["skip-mlp"][-1] > 1e6 * curves["mlp"][-1]
    assert largest_ratio(curves["attention"]) < 1
    assert all(len(curve) == 13 for curve in curves.values())


def test_one_layer_of_attention_by_loops() -> None:
    X = torch.randn(5, 8)
    W_q, W_k, W_v, W_o = (
        torch.randn(8, 8, generator=generator).double() * 8**-0.5
        for generator in [torch.Generator().manual_seed(3)]
        for _ in range(4)
    )
    H = X.double()
    weights = ((H @ W_q) @ (H @ W_k).T * 8**-0.5).softmax(dim=-1)
    expected = distance_to_equal_rows(weights @ (H @ W_v) @ W_o)
    assert collapse_curves(X, 1, 1, seed=3)["attention"][1].item() == pytest.approx(expected)


def test_ratio_leaves_rounding_out() -> None:
    assert largest_ratio(torch.tensor([1.0, 0.5, 1e-16, 3e-16])) == 0.5


def test_wanted_weights_by_hand() -> None:
    third, half = 1 / 3, 1 / 2
    expected = torch.tensor(
        [[half, half, 0, 0], [third, third, third, 0], [0, third, third, third], [0, 0, half, half]]
    )
    torch.testing.assert_close(neighbour_weights(4, 1), expected)


def test_the_loss_is_the_mean_over_random_numbers() -> None:
    A, T = torch.rand(4, 4), torch.rand(4, 4)
    x = torch.randn(4, 400_000)
    assert task_loss(A, T) == pytest.approx(((A - T) @ x).square().mean().item(), rel=0.01)


def test_a_learned_table_solves_the_task_better_than_sinusoids() -> None:
    *_, last = learn_table(16, 16, 2, 400)
    wanted = neighbour_weights(16, 2)
    learned = task_loss(table_weights(last.table), wanted)
    assert learned < 0.5 * sinusoidal_loss(16, 16, wanted) < task_loss(torch.full((16, 16), 1 / 16), wanted)
    assert offset_share(last.table @ last.table.T) > 0.9
    assert last.losses[0] > 5 * last.losses[-1]


def test_training_can_be_stopped_and_is_the_same_each_time() -> None:
    states = list(learn_table(8, 8, 1, 50, every=20))
    assert [state.step for state in states] == [20, 40, 50]
    assert [len(state.losses) for state in states] == [20, 40, 50]
    torch.testing.assert_close(next(learn_table(8, 8, 1, 50)).table, states[0].table, atol=0, rtol=0)
    assert not torch.equal(states[0].table, states[1].table)


def test_offset_share_is_one_for_sinusoids_and_low_for_noise() -> None:
    P = sinusoidal_table(30, 32)
    assert offset_share(P @ P.T) == pytest.approx(1, abs=1e-6)
    assert offset_share(torch.randn(30, 30)) < 0.3
