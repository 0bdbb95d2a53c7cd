"""The book's toy example of multi-head attention, and what multi-head attention costs."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.attention.multi_head import MultiHeadAttention
from viz_core.trace import record

NUM_HIDDENS, NUM_HEADS = 100, 5
NUM_QUERIES, NUM_KEYS = 4, 6
LENGTHS = (3, 2)


class CrossAttention(NamedTuple):
    """Inputs and outputs of the layer on queries and other keys."""

    weights: Float[Tensor, "2 5 4 6"]
    output: Float[Tensor, "2 4 100"]
    parameters: int  # numbers in its four matrices


def book_toy(
    query_size: int = NUM_HIDDENS,
    key_size: int = NUM_HIDDENS,
    value_size: int = NUM_HIDDENS,
    ones: bool = True,
    seed: int = 0,
) -> CrossAttention:
    """W_o [head_1; ...; head_5] for 4 queries and 6 keys in two rows, of which 3 and 2 may be seen.

    Each input has its own width: W_q, W_k and W_v bring all three to 100 (Dive into Deep Learning, section 11.5.2,
    whose queries, keys and values are ones).
    """
    generator = torch.Generator().manual_seed(seed)
    sizes = (query_size, key_size, value_size)
    layer = MultiHeadAttention(
        NUM_HIDDENS, NUM_HEADS, query_size=query_size, key_size=key_size, value_size=value_size
    ).eval()
    with torch.no_grad(), record() as trace:
        for linear in (layer.W_q, layer.W_k, layer.W_v, layer.W_o):
            linear.weight.normal_(std=linear.in_features**-0.5, generator=generator)
        counts = (NUM_QUERIES, NUM_KEYS, NUM_KEYS)
        shapes = [(2, n, size) for n, size in zip(counts, sizes, strict=True)]
        inputs = [torch.ones(shape) if ones else torch.randn(shape, generator=generator) for shape in shapes]
        output = layer(*inputs, torch.tensor(LENGTHS))
    parameters = sum(parameter.numel() for parameter in layer.parameters())
    return CrossAttention(next(iter(trace)).weights(), output, parameters)


def is_separator(token: str) -> bool:
    """Whether a token is a special token, such as <eos>, or has no letter and no digit, such as a full stop."""
    return (token.startswith("<") and token.endswith(">")) or not any(character.isalnum() for character in token)


def mean_ranges(weights: Float[Tensor, "heads n n"], positions: Sequence[int] | None = None) -> Float[Tensor, " heads"]:
    """mean_i sum_j a_ij |i - j|: the mean attention distance of each head, in tokens.

    Args:
        positions: those counted, as queries and as keys; each row is divided by its new sum.
    """
    places = torch.arange(weights.shape[-1], dtype=weights.dtype)
    if positions is not None:
        places = places[list(positions)]
        weights = weights[:, list(positions)][..., list(positions)]
        weights = weights / weights.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)
    return (weights * (places[:, None] - places).abs()).sum(dim=-1).mean(dim=-1)


def uniform_range(positions: Sequence[int]) -> float:
    """The mean attention distance of a head with uniform weights on these positions; n of them in a row:
    (n^2 - 1) / (3 n)."""
    places = torch.tensor(positions, dtype=torch.float64)
    return float((places[:, None] - places).abs().mean())


class MultiHeadCost(NamedTuple):
    """Numbers in one layer, for one sequence, without biases."""

    parameters: int  # learned, in W_q, W_k, W_v and W_o
    projections: int  # multiplications in the four projections
    products: int  # multiplications in Q K^T and in weights times V
    weights: int  # attention weights, each with an exponential of its own

    @property
    def multiplications(self) -> int:
        """Of the projections and the products together."""
        return self.projections + self.products


def multi_head_cost(num_tokens: int, num_hiddens: int, num_heads: int) -> MultiHeadCost:
    """Cost of self-attention over n tokens of width d with h heads, each w wide (Vaswani 2017, section 3.2.2).

    parameters 4 d h w, projections 4 n d h w, products 2 n^2 h w, weights h n^2. With w = d / h,
    as in the paper, h leaves all but the last: 4 d^2, 4 n d^2 and 2 n^2 d.
    """
    n, d = num_tokens, num_hiddens
    return MultiHeadCost(4 * d * d, 4 * n * d * d, 2 * n * n * d, num_heads * n * n)


def divisors(number: int) -> list[int]:
    """Every whole number that divides a positive one, in order: the numbers of heads a width can be cut into."""
    return [candidate for candidate in range(1, number + 1) if number % candidate == 0]
