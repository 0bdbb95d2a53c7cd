"""The cost of additive scores in a Transformer in place of scaled dot products, counted on the layers."""

from dataclasses import dataclass
from typing import Any

import torch

from viz_core.attention import AdditiveAttention, DotProductAttention
from viz_core.attention.scores import dot_scores
from viz_core.torch_internals.function_modes import TorchDispatchMode


@dataclass(frozen=True)
class ScoreCost:
    """What the scores of all heads of one layer take."""

    multiplications: int  # of numbers, projections that the scoring function brings along included
    largest: int  # numbers in the largest tensor made on the way
    parameters: int  # that the scoring function learns


class _Largest(TorchDispatchMode):
    """Record the size of the largest output of any operation."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        self.numbers = max(self.numbers, found.numel() if isinstance(found, torch.Tensor) else 0)
        return found


def dot_cost(n: int, num_hiddens: int, num_heads: int) -> ScoreCost:
    """n^2 d multiplications for the products, and scores of h maps (Vaswani 2017, section 3.2.1)."""
    d = num_hiddens // num_heads
    X = torch.empty(num_heads, n, d, device="meta")
    with _Largest() as largest:
        dot_scores(X, X)
    return ScoreCost(n * n * num_hiddens, largest.numbers, sum(p.numel() for p in DotProductAttention().parameters()))


def additive_cost(n: int, num_hiddens: int, num_heads: int) -> ScoreCost:
    """n^2 d for w_v^T tanh(W_q q + W_k k), and 2 n d^2 / h for W_q and W_k of all heads, as wide as a head is.

    (Bahdanau 2015, appendix A.1.2.) No product of matrices: each pair of tokens has a vector of its own.
    """
    d = num_hiddens // num_heads
    layer = AdditiveAttention(d, d, d).to("meta")
    X = torch.empty(num_heads, n, d, device="meta")
    with _Largest() as largest, torch.no_grad():
        layer.score(X, layer.W_k(X))
    parameters = num_heads * sum(p.numel() for p in layer.parameters())
    return ScoreCost(n * n * num_hiddens + 2 * n * num_hiddens * d, largest.numbers, parameters)
