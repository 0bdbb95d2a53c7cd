"""How self-attention grows with the text, and what is cheaper."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.attention import MultiHeadAttention
from viz_core.attention.linear import elu_features
from viz_core.lessons.architectures.costs import LayerSizes, longest_path
from viz_core.trace import attention_weights

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
    """Numbers of a layer on n tokens: its parameters, keys and values, weights of all heads, and its longest path.

    Counted by tensors that have a shape and no content, so that no length is too long.
    """
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
