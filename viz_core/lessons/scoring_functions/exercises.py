"""The book's examples and exercises of section 11.3: Dive into Deep Learning, "Attention Scoring Functions"."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from viz_core.attention.additive import DotProductAttention
from viz_core.attention.masking import masked_softmax
from viz_core.attention.scores import batch_product, dot_scores, general_scores
from viz_core.attention.scores.additive import make_additive
from viz_core.attention.scores.function import ScoreWidths
from viz_core.lessons.scoring_functions.scaling import gaussian_scores, gaussian_terms
from viz_core.trace import record
from viz_core.trace.weights import row_softmax

QUERY_SIZE, KEY_SIZE = 3, 5
_QUERIES, _KEYS, _WIDTH = 5, 7, 8


def distance_errors(seed: int = 0) -> dict[str, float]:
    """max |softmax(s) - softmax(-|q - k|^2 / 2)| for three scores s on random queries and keys.

    "keys": q . k - |k|^2 / 2. "both": that less |q|^2 / 2. "neither": q . k / sqrt(d) (Dive into Deep Learning, section
    11.3, exercise 1).
    """
    generator = torch.Generator().manual_seed(seed)
    queries, keys = (torch.randn(n, _WIDTH, generator=generator, dtype=torch.float64) for n in (_QUERIES, _KEYS))
    wanted, terms = row_softmax(gaussian_scores(queries, keys)), gaussian_terms(queries, keys)
    scores = {"keys": terms.product + terms.key_term, "both": terms.total(), "neither": terms.product / _WIDTH**0.5}
    return {name: float((row_softmax(each) - wanted).abs().max()) for name, each in scores.items()}


def contributing_components(way: str, seed: int = 0) -> int | None:
    """Number of a key's five components that change its score with a query of three; None where the shapes do not fit.

    Args:
        way: "between", q^T M k with a 3 x 5 matrix; "padded", the query padded with zeros; "one", one 5 x 5 matrix
            for both (Dive into Deep Learning, section 11.3, exercise 2).
    """
    generator = torch.Generator().manual_seed(seed)
    query, M, square = (
        torch.randn(*shape, generator=generator)
        for shape in ((1, 1, QUERY_SIZE), (QUERY_SIZE, KEY_SIZE), (KEY_SIZE, KEY_SIZE))
    )
    key = torch.randn(1, 1, KEY_SIZE, generator=generator)
    score = {
        "between": lambda k: general_scores(query, k, M),
        "padded": lambda k: dot_scores(torch.nn.functional.pad(query, (0, KEY_SIZE - QUERY_SIZE)), k),
        "one": lambda k: dot_scores(query @ square, k @ square),
    }[way]
    try:
        return int((torch.func.grad(lambda k: score(k).sum())(key) != 0).sum())
    except (ValueError, RuntimeError):
        return None


class Counted(NamedTuple):
    """What attention of n queries on m keys costs."""

    multiplications: int  # counted by torch as it multiplies
    read: int  # numbers in queries, keys and values
    weights: int  # numbers of the score map, if it is stored


def count_costs(num_queries: int, num_keys: int, key_size: int, value_size: int) -> Counted:
    """Q K^T and then the weights times V, on ones, counted by torch: n m (d + v) multiplications.

    (Dive into Deep Learning, section 11.3, exercise 3.)
    """
    queries, keys, values = (
        torch.ones(1, n, size) for n, size in ((num_queries, key_size), (num_keys, key_size), (num_keys, value_size))
    )
    with FlopCounterMode(display=False) as counter:
        weights = batch_product(queries, keys.transpose(1, 2))
        batch_product(weights, values)
    read = queries.numel() + keys.numel() + values.numel()
    return Counted(counter.get_total_flops() // 2, read, weights.numel())  # a multiplication and an addition


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
