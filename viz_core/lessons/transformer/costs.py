"""What a deeper Transformer and additive scores cost."""

from typing import Any, NamedTuple

import torch

from viz_core.attention import AdditiveAttention, DotProductAttention
from viz_core.attention.scores import dot_scores
from viz_core.torch_internals.function_modes import TorchDispatchMode


class TransformerSizes(NamedTuple):
    """The book's Transformer (section 11.7) unless said otherwise, on pairs of so many source and target tokens."""

    num_hiddens: int = 256
    ffn_num_hiddens: int = 64
    source_words: int = 194
    target_words: int = 214
    tokens: int = 9


def depth_cost(depth: int, sizes: TransformerSizes) -> tuple[int, int]:
    """Parameters of a Transformer with so many blocks on each side, and multiplications of an update for one pair.

    A block of the encoder has 4 d^2 + 2 d f weights, one of the decoder 8 d^2 + 2 d f, each multiplied with every
    token; attention adds 2 n^2 d, once and twice; biases and norms are counted among parameters. What is done forward
    is done twice more backward (Kaplan 2020, section 2.1).
    """
    d, f, n = sizes.num_hiddens, sizes.ffn_num_hiddens, sizes.tokens
    feed_forward, vectors = 2 * d * f, f + d  # the vectors are the feed-forward net's biases
    weights = depth * (12 * d * d + 2 * feed_forward)
    beside = depth * (2 * vectors + 10 * d)  # five norms, each with a scale and a shift
    embeddings = d * (sizes.source_words + sizes.target_words)
    output = d * sizes.target_words
    forward = n * (weights + output) + depth * 3 * 2 * n * n * d
    return weights + beside + embeddings + output + sizes.target_words, 3 * forward


class ScoreCost(NamedTuple):
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
