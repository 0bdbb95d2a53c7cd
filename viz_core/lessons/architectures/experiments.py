"""What the formulas say, tried on real layers: signals followed, words shuffled."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from viz_core.lessons.architectures.costs import LayerSizes
from viz_core.lessons.architectures.layers import build_layer


def signal_strength(name: str, first: int, last: int, sizes: LayerSizes, num_layers: int) -> float:
    """max |d output(last) / d input(first)| of a stack of real layers: exactly 0 where no path leads.

    Layers have random parameters, so a path's gradient cancels with probability 0.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        stack = nn.Sequential(*(build_layer(name, sizes, depth) for depth in range(num_layers))).double()
        X = torch.randn(1, sizes.n, sizes.d, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(stack(X)[0, last].sum(), X)
    return float(gradient[0, first].abs().max())


@torch.no_grad()
def shuffled_residual(layer: nn.Module, X: Float[Tensor, "n d"], order: Int[Tensor, "n"]) -> float:
    """max |f(P X) - P f(X)| for the permutation P that puts token order[i] at place i.

    Near 0 where the layer sees a set of tokens and not a sequence: shuffled words give shuffled outputs.
    """
    return float((layer(X[order][None])[0] - layer(X[None])[0, order]).abs().max())


@torch.no_grad()
def pooled_residual(layer: nn.Module, X: Float[Tensor, "n d"], order: Int[Tensor, "n"]) -> float:
    """max |mean f(P X) - mean f(X)|: what a classifier on the mean of the outputs would notice of the shuffle."""
    return float((layer(X[order][None])[0].mean(dim=0) - layer(X[None])[0].mean(dim=0)).abs().max())
