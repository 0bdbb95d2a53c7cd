"""Rollout against the sum over all paths, and relevance against finite differences."""

from itertools import pairwise, product

import pytest
import torch
import torch.nn.functional as F

from viz_core.maps.rollout import (
    attention_rollout,
    discard_smallest,
    relevance_maps,
    rollout_by_layer,
)
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


def test_by_hand() -> None:
    """Both tokens attend to token 0 alone: half of token 1 is left after a layer, a quarter after two."""
    attention = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])
    torch.testing.assert_close(
        rollout_by_layer([attention, attention]), torch.tensor([[[1.0, 0.0], [0.5, 0.5]], [[1.0, 0.0], [0.75, 0.25]]])
    )


def test_the_smallest_weights_are_discarded_and_no_others() -> None:
    weights = torch.tensor([[0.5, 0.4, 0.1], [0.2, 0.2, 0.6], [0.0, 1.0, 0.0]])
    # floor(0.5 * 9) = 4: both zeros, 0.1 and the first of the two 0.2
    expected = torch.tensor([[0.5, 0.4, 0.0], [0.0, 0.2, 0.6], [0.0, 1.0, 0.0]])
    assert torch.equal(discard_smallest(weights, 0.5), expected)
    assert torch.equal(discard_smallest(weights, 0.0), weights)


def forward_with(
    model: ViT, X: torch.Tensor, changed: dict[int, torch.Tensor]
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Logits by plain formulas in float64, each layer's weights moved by what is given, and those weights."""
    H = model.embed(X)
    used = []
    for layer, block in enumerate(model.blocks):
        a, Z = block.attention, block.ln1(H)
        q, k, v = (W(Z).reshape(1, 5, 2, 4).transpose(1, 2) for W in (a.W_q, a.W_k, a.W_v))
        weights = (q @ k.transpose(2, 3) / 2).softmax(dim=-1) + changed.get(layer, 0.0)
        used.append(weights)
        H = H + a.W_o((weights @ v).transpose(1, 2).reshape(1, 5, 8))
        H = H + block.mlp.dense2(F.gelu(block.mlp.dense1(block.ln2(H))))
    return model.head(H[:, 0]), used


@pytest.fixture
def double(model: ViT) -> ViT:
    return model.double().requires_grad_(False)


def test_against_finite_differences_of_a_two_layer_model(double: ViT, picture: torch.Tensor) -> None:
    X, target, step = picture.double(), 1, 1e-5
    _, weights = forward_with(double, X, {})
    gradients = []
    for layer in range(2):
        gradient = torch.zeros(2, 5, 5, dtype=torch.float64)
        for place in torch.cartesian_prod(torch.arange(2), torch.arange(5), torch.arange(5)).tolist():
            nudge = torch.zeros(1, 2, 5, 5, dtype=torch.float64)
            nudge[(0, *place)] = step
            up, down = (forward_with(double, X, {layer: sign * nudge})[0][0, target] for sign in (1, -1))
            gradient[tuple(place)] = (up - down) / (2 * step)
        gradients.append(gradient)
    relevance = torch.eye(5, dtype=torch.float64)
    for layer in range(2):
        fused = torch.zeros(5, 5, dtype=torch.float64)
        for head in range(2):
            fused += (gradients[layer][head] * weights[layer][0, head]).clamp_min(0) / 2
        relevance = relevance + fused @ relevance

    with record(differentiable=True) as trace:
        logits = double(X)
    found = relevance_maps(trace, logits[0, target])
    torch.testing.assert_close(found.double(), relevance, atol=1e-6, rtol=1e-5)
    assert (relevance - torch.eye(5)).max() > 1e-3  # there is something to find
