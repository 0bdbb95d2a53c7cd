"""The book's examples of section 11.3: Dive into Deep Learning, "Attention Scoring Functions"."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.attention.additive import DotProductAttention
from viz_core.attention.masking import masked_softmax
from viz_core.attention.scores import batch_product
from viz_core.attention.scores.additive import make_additive
from viz_core.attention.scores.function import ScoreWidths
from viz_core.trace import record

SENTENCES = (("Dive", "into", "Deep", "Learning"), ("Learn", "to", "code"), ("Hello", "world"))
"""A batch of three sentences; the shorter ones are padded, and padding is masked."""
LENGTHS = (2, 6)
"""Valid lengths of the toy's two batch rows."""


def book_weights() -> Float[Tensor, " keys"]:
    """Masked softmax of the scores 0 and 1 and two more, of which the valid length 2 hides the last two."""
    scores = torch.tensor([[[0.0, 1.0, 5.0, 9.0]]])
    return masked_softmax(scores, torch.tensor([2]))[0, 0]


def sentence_weights() -> Float[Tensor, "sentences tokens"]:
    """Weights of equal scores over each sentence's own words: 1/4, 1/3 and 1/2, and exactly 0 on every blank."""
    lengths = torch.tensor([len(words) for words in SENTENCES])
    return masked_softmax(torch.zeros(len(SENTENCES), 1, int(lengths.max())), lengths)[:, 0]


class Toy(NamedTuple):
    """Dot-product attention on the book's toy example."""

    weights: Float[Tensor, "2 10"]  # of the one query of each batch row on its ten keys
    dropped: Float[Tensor, "2 10"]  # the same as they reach the values while training: some are 0, the others larger
    output: Float[Tensor, "2 1 4"]  # the weighted sums, without dropout


def dot_product_toy(equal_keys: bool, dropout: float = 0.0, seed: int = 0) -> Toy:
    """Queries (2, 1, 2), ten keys and values, lengths 2 and 6; keys are random or all ones, values are 0 to 39."""
    generator = torch.Generator().manual_seed(seed)
    queries, keys = (torch.randn(2, n, 2, generator=generator) for n in (1, 10))
    values = torch.arange(40.0).reshape(1, 10, 4).repeat(2, 1, 1)
    with torch.no_grad(), record() as trace:
        drawn = torch.ones_like(keys) if equal_keys else keys
        output = DotProductAttention().eval()(queries, drawn, values, torch.tensor(LENGTHS))
    weights = next(iter(trace)).weights()[:, 0, 0]
    return Toy(weights, drop(weights, dropout, generator), output)


def drop(
    weights: Float[Tensor, "rows keys"], probability: float, generator: torch.Generator
) -> Float[Tensor, "rows keys"]:
    """Dropout on weights: each is 0 with this probability, else divided by 1 - p, which keeps its mean.

    A row no longer sums to 1 (Srivastava 2014; `DotProductAttention(dropout)` does so while training).
    """
    mask = torch.rand(weights.shape, generator=generator) >= probability
    return weights * mask / (1 - probability)


@torch.no_grad()
def concatenation_error(query_size: int = 20, key_size: int = 2, num_hiddens: int = 8, seed: int = 0) -> float:
    """max |additive score - MLP([q; k])| for the toy's sizes, an MLP with one hidden layer and no biases.

    W_q q + W_k k is [W_q W_k] times q and k one above the other: additive attention is a small network on the
    concatenation of query and key (Dive into Deep Learning, section 11.3.5).
    """
    layer = make_additive(ScoreWidths(query_size, key_size, num_hiddens), seed)
    hidden = nn.Linear(query_size + key_size, num_hiddens, bias=False)
    hidden.weight.copy_(torch.cat([layer.W_q.weight, layer.W_k.weight], dim=1))
    network = nn.Sequential(hidden, nn.Tanh(), layer.w_v)
    generator = torch.Generator().manual_seed(seed)
    queries, keys = (torch.randn(2, n, size, generator=generator) for n, size in ((1, query_size), (10, key_size)))
    together = torch.cat([queries.expand(-1, 10, -1), keys], dim=-1)
    return float((layer.score(queries, layer.W_k(keys))[:, 0] - network(together)[..., 0]).abs().max())


def batch_product_shape() -> tuple[int, ...]:
    """The shape of the book's batched product of (2, 3, 4) and (2, 4, 6)."""
    return tuple(batch_product(torch.ones(2, 3, 4), torch.ones(2, 4, 6)).shape)
