"""The formulas checked on real layers: gradients between tokens, and shuffled words."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from viz_core.lessons.architectures.costs import ARCHITECTURES, LayerSizes
from viz_core.lessons.architectures.layers import build_layer
from viz_core.trace import record


def signal_strength(name: str, first: int, last: int, sizes: LayerSizes, num_layers: int) -> float:
    """max |d output(last) / d input(first)| of a stack of real layers: exactly 0 where no path leads.

    Layers have random parameters, so a path's gradient cancels with probability 0.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        stack = nn.Sequential(*(build_layer(name, sizes, depth, causal=True) for depth in range(num_layers))).double()
        X = torch.randn(1, sizes.n, sizes.d, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(stack(X)[0, last].sum(), X)
    return float(gradient[0, first].abs().max())


@torch.no_grad()
def shuffled_residual(layer: nn.Module, X: Float[Tensor, "n d"], order: Int[Tensor, " n"]) -> float:
    """max |f(P X) - P f(X)| for the permutation P that puts token order[i] at place i.

    Near 0 where the layer sees a set of tokens and not a sequence: shuffled words give shuffled outputs.
    """
    return float((layer(X[order][None])[0] - layer(X[None])[0, order]).abs().max())


@torch.no_grad()
def pooled_residual(layer: nn.Module, X: Float[Tensor, "n d"], order: Int[Tensor, " n"]) -> float:
    """max |mean f(P X) - mean f(X)|: what a classifier on the mean of the outputs would notice of the shuffle."""
    return float((layer(X[order][None])[0].mean(dim=0) - layer(X[None])[0].mean(dim=0)).abs().max())


def fresh_layers(num_hiddens: int) -> dict[str, nn.Module]:
    """One untrained layer of each architecture, always with the same parameters."""
    sizes = LayerSizes(1, num_hiddens, 3, 4)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return {name: build_layer(name, sizes, depth=1).eval().requires_grad_(False) for name in ARCHITECTURES}


@torch.no_grad()
def first_head_weights(layer: nn.Module, X: Float[Tensor, "n d"]) -> Float[Tensor, "n n"]:
    """The weights of the first head of a layer of self-attention."""
    with record() as trace:
        layer(X[None])
    return next(iter(trace)).weights(head=0)[0]


def timed_call(name: str, n: int, sizes: LayerSizes, num_heads: int, device: torch.device) -> Callable[[], object]:
    """A call of one layer on n random tokens, to be timed."""
    layer = build_layer(name, sizes, num_heads=num_heads).eval().to(device)
    X = torch.randn(1, n, sizes.d, device=device)
    return lambda: layer(X)
