"""How self-attention grows with the text, what is cheaper, and the formulas checked on real layers."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from viz_core.attention import MultiHeadAttention
from viz_core.attention.linear import elu_features
from viz_core.lessons.architectures.costs import ARCHITECTURES, LayerSizes, longest_path
from viz_core.lessons.architectures.layers import build_layer
from viz_core.trace import attention_weights, record

Tokens = Float[Tensor, "n d"]


class Saving(NamedTuple):
    """The cost and the change of one approximation, for a head of n tokens."""

    held: int  # weights, or sums in their place, that exist at once
    multiplications: int  # for scores and sums
    change: float  # max |output - output of whole attention|


def savings(n: int, num_hiddens: int, width: int, seed: int = 0) -> dict[str, Saving]:
    """Whole attention, the same by tiles, within a window, and with the softmax replaced (Tay 2020 has many more).

    Args:
        width: tokens of a tile, and of a window.
    """
    generator = torch.Generator().manual_seed(seed)
    Q, K, V = (torch.randn(n, num_hiddens, generator=generator, dtype=torch.float64) for _ in range(3))
    whole, product = whole_attention(Q, K, V), 2 * n * num_hiddens
    ways = {
        "whole": (n * n, product * n, whole),
        "tiles": (width * width, product * n, tiled_attention(Q, K, V, width)),
        "window": (n * width, product * width, window_attention(Q, K, V, width)),
        "linear": (num_hiddens**2, product * num_hiddens, linear_attention(Q, K, V)),
    }
    return {
        name: Saving(held, multiplications, float((output - whole).abs().max()))
        for name, (held, multiplications, output) in ways.items()
    }


def whole_attention(Q: Tokens, K: Tokens, V: Tokens) -> Tokens:
    """softmax(Q K^T / sqrt(d)) V (Vaswani 2017, equation 1)."""
    return attention_weights(Q[None, None], K[None, None])[0, 0] @ V


def tiled_attention(Q: Tokens, K: Tokens, V: Tokens, width: int) -> Tokens:
    """The same by tiles of width x width scores, of which one exists at a time; maximum and sum of a row run along.

    o <- o e^(m - m') + e^(S - m') V with the new maximum m' of each row, and o / l in the end, where the sum l runs
    along like o (Milakov and Gimelshein 2018, algorithm 3; Dao 2022, algorithm 1).
    """
    outputs = []
    for queries in (Q * Q.shape[-1] ** -0.5).split(width):
        most = torch.full((len(queries), 1), -torch.inf, dtype=Q.dtype)
        total, output = torch.zeros_like(most), torch.zeros(len(queries), V.shape[-1], dtype=V.dtype)
        for keys, values in zip(K.split(width), V.split(width), strict=True):
            scores = queries @ keys.T
            higher = torch.maximum(most, scores.amax(dim=-1, keepdim=True))
            shrink, weights = (most - higher).exp(), (scores - higher).exp()
            total = total * shrink + weights.sum(dim=-1, keepdim=True)
            output = output * shrink + weights @ values
            most = higher
        outputs.append(output / total)
    return torch.cat(outputs)


def window_attention(Q: Tokens, K: Tokens, V: Tokens, width: int) -> Tokens:
    """Attention of each token over the `width` around it (Vaswani 2017, section 4; Beltagy 2020, section 3.1)."""
    places = torch.arange(len(Q))
    offsets = places[None] - places[:, None]
    in_window = (offsets >= -(width // 2)) & (offsets < width - width // 2)
    return attention_weights(Q[None, None], K[None, None], in_window[None, None])[0, 0] @ V


def linear_attention(Q: Tokens, K: Tokens, V: Tokens) -> Tokens:
    """phi(Q) (phi(K)^T V) / (phi(Q) sum phi(K)) with phi(x) = elu(x) + 1: no map at all (Katharopoulos 2020, eq. 5)."""
    queries, keys = elu_features(Q), elu_features(K)
    return queries @ (keys.T @ V) / (queries @ keys.sum(dim=0))[:, None]


def held(n: int, num_hiddens: int, num_heads: int) -> dict[str, int]:
    """Numbers of a layer on n tokens, without their content: parameters, keys and values, weights, its longest path."""
    layer = MultiHeadAttention(num_hiddens, num_heads).to("meta")
    X = torch.empty(1, n, num_hiddens, device="meta")
    with torch.no_grad():
        keys, values = layer.project(X, X)
        weights = attention_weights(keys, keys)
    return {
        "parameters": sum(p.numel() for p in layer.parameters()),
        "keys": keys.numel() + values.numel(),
        "weights": weights.numel(),
        "path": int(longest_path("attention", LayerSizes(n, num_hiddens, 1, 1))),
    }


def signal_strength(name: str, first: int, last: int, sizes: LayerSizes, num_layers: int) -> float:
    """max |d output(last) / d input(first)| of a stack of random layers: exactly 0 where no path leads."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        stack = nn.Sequential(*(build_layer(name, sizes, depth, causal=True) for depth in range(num_layers))).double()
        X = torch.randn(1, sizes.n, sizes.d, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(stack(X)[0, last].sum(), X)
    return float(gradient[0, first].abs().max())


@torch.no_grad()
def shuffled_residual(layer: nn.Module, X: Float[Tensor, "n d"], order: Int[Tensor, " n"]) -> float:
    """max |f(P X) - P f(X)| for the permutation P that puts token order[i] at place i; near 0 for a layer on sets."""
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
