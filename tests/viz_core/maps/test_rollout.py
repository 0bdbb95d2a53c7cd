"""Rollout held against sums over every path through the layers, and against hand-worked maps."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from viz_core.maps.rollout import attention_rollout, discard_smallest, rollout_by_layer
from viz_core.models.vit import ViT
from viz_core.trace import record


def maps(layers: int, heads: int, n: int, seed: int = 0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(heads, n, n, generator=generator).mul(2).softmax(dim=-1) for _ in range(layers)]


def by_paths(layers: list[torch.Tensor], fuse: str, ratio: float) -> torch.Tensor:
    """The same by looping: every way from token i down to token j, each the product of its steps."""
    n = layers[0].shape[1]
    steps = []
    for weights in layers:
        table = [[0.0] * n for _ in range(n)]
        for i, j in product(range(n), repeat=2):
            heads = [float(w[i, j]) for w in weights]
            table[i][j] = {"mean": sum(heads) / len(heads), "max": max(heads), "min": min(heads)}[fuse]
        for i, j in sorted(product(range(n), repeat=2), key=lambda ij: table[ij[0]][ij[1]])[: int(ratio * n * n)]:
            table[i][j] = 0.0
        for i in range(n):
            table[i][i] += 1
            total = sum(table[i])
            table[i] = [value / total for value in table[i]]
        steps.append(table)
    result = torch.zeros(n, n)
    for path in product(range(n), repeat=len(layers) + 1):  # from the input (first) to the last layer (last)
        share = 1.0
        for step, (below, above) in zip(steps, pairwise(path), strict=True):
            share *= step[above][below]
        result[path[-1], path[0]] += share
    return result


@pytest.mark.parametrize("fuse", ["mean", "max", "min"])
@pytest.mark.parametrize("ratio", [0.0, 0.5, 0.9])
def test_equal_to_the_sum_over_all_paths(fuse: str, ratio: float) -> None:
    layers = maps(3, 2, 4)
    found = attention_rollout(layers, fuse, ratio)  # type: ignore[arg-type]
    torch.testing.assert_close(found, by_paths(layers, fuse, ratio), atol=1e-6, rtol=0)


def test_of_a_two_layer_model(model: ViT, picture: torch.Tensor) -> None:
    with torch.no_grad(), record() as trace:
        model(picture)
    layers = [call.weights()[0] for call in trace]
    torch.testing.assert_close(attention_rollout(layers), by_paths(layers, "mean", 0.0), atol=1e-6, rtol=0)


def test_by_hand() -> None:
    """Both tokens attend to token 0 alone: half of token 1 is left after a layer, a quarter after two."""
    attention = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])
    torch.testing.assert_close(
        rollout_by_layer([attention, attention]), torch.tensor([[[1.0, 0.0], [0.5, 0.5]], [[1.0, 0.0], [0.75, 0.25]]])
    )


def test_rows_are_normalised_not_columns() -> None:
    """With sums over columns, as a published implementation takes them, rows would not sum to 1."""
    attention = torch.tensor([[[0.9, 0.1, 0.0], [0.9, 0.0, 0.1], [0.8, 0.1, 0.1]]])
    torch.testing.assert_close(attention_rollout([attention], "max", 0.3).sum(dim=-1), torch.ones(3))


@settings(max_examples=25)
@given(
    layers=st.integers(1, 5),
    heads=st.integers(1, 4),
    n=st.integers(1, 7),
    ratio=st.floats(0, 0.99),
    fuse=st.sampled_from(["mean", "max", "min"]),
)
def test_rows_always_sum_to_one(layers: int, heads: int, n: int, ratio: float, fuse: str) -> None:
    found = rollout_by_layer(maps(layers, heads, n, seed=n), fuse, ratio)  # type: ignore[arg-type]
    assert found.min() >= 0
    torch.testing.assert_close(found.sum(dim=-1), torch.ones(layers, n), atol=1e-5, rtol=0)


def test_the_smallest_weights_are_discarded_and_no_others() -> None:
    weights = torch.tensor([[0.5, 0.4, 0.1], [0.2, 0.2, 0.6], [0.0, 1.0, 0.0]])
    # floor(0.5 * 9) = 4: both zeros, 0.1 and the first of the two 0.2
    expected = torch.tensor([[0.5, 0.4, 0.0], [0.0, 0.2, 0.6], [0.0, 1.0, 0.0]])
    assert torch.equal(discard_smallest(weights, 0.5), expected)
    assert torch.equal(discard_smallest(weights, 0.0), weights)


@pytest.mark.usefixtures("shapes_unchecked")
def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="expected at least one"):
        attention_rollout([])
    with pytest.raises(ValueError, match="of one n, got shapes"):
        attention_rollout([torch.zeros(1, 2, 2), torch.zeros(1, 3, 3)])
    with pytest.raises(ValueError, match="of one n, got shapes"):
        attention_rollout([torch.zeros(1, 2, 3)])
    with pytest.raises(ValueError, match="head_fusion: expected 'mean', 'max' or 'min', got 'median'"):
        attention_rollout(maps(1, 1, 2), "median")  # type: ignore[arg-type]
    for ratio in (-0.1, 1.0):
        with pytest.raises(ValueError, match="discard_ratio: expected at least 0 and below 1"):
            attention_rollout(maps(1, 1, 2), discard_ratio=ratio)
