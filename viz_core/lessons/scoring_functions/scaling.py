"""Scores of random queries and keys divided by a root, and the book's exercises on them."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.attention.additive import DotProductAttention
from viz_core.attention.masking import masked_softmax
from viz_core.attention.scores import batch_product
from viz_core.attention.scores.additive import make_additive
from viz_core.attention.scores.function import ScoreWidths
from viz_core.maps.measures import attention_entropy
from viz_core.trace import record
from viz_core.trace.weights import row_softmax

# Quantiles of a distribution that a band shows: 90% and 50% of all lie within, and the median.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
QUARTILES = (0.25, 0.5, 0.75)


def dot_products(d: int, count: int, seed: int = 0) -> Float[Tensor, " count"]:
    """q . k of independent q and k whose d entries are drawn from N(0, 1): mean 0, variance d.

    E[q_i k_i] = 0 and E[(q_i k_i)^2] = 1, and d such terms are added (Vaswani 2017, footnote 4).
    """
    generator = torch.Generator().manual_seed(seed)
    queries = torch.randn(count, d, generator=generator)
    keys = torch.randn(count, d, generator=generator)
    return (queries * keys).sum(dim=-1)


def query_scores(
    d: int, num_queries: int, num_keys: int, seed: int = 0
) -> tuple[Float[Tensor, "queries keys"], Float[Tensor, "queries keys d"]]:
    """q . k of random queries, each with keys of its own, and these keys: all entries are drawn from N(0, 1)."""
    generator = torch.Generator().manual_seed(seed)
    queries = torch.randn(num_queries, 1, d, generator=generator)
    keys = torch.randn(num_queries, num_keys, d, generator=generator)
    return (queries @ keys.mT)[:, 0], keys


def variance_error_allowed(d: int, count: int) -> float:
    """Six standard errors of a sample's variance / d: (2 + 6 / d) / count is its variance.

    The product of two standard normal numbers has excess kurtosis 6, the sum of d of them 6 / d.
    """
    return 6 * math.sqrt((2 + 6 / d) / count)


class Sharpness(NamedTuple):
    """How concentrated softmax is over random keys at a width d, over many queries."""

    entropy: float  # mean entropy of the weights, in bits: log2(keys) if all are equal, 0 if one key has all the weight
    largest: float  # mean of the largest weight, 1 / keys to 1
    reaching: tuple[float, ...]  # norm of the gradient of the weights with respect to the query, at QUARTILES

    @property
    def median_gradient(self) -> float:
        """Median norm of the gradient that reaches a query."""
        return self.reaching[QUARTILES.index(0.5)]


def sharpness(
    products: Float[Tensor, "queries keys"], keys: Float[Tensor, "queries keys d"], divisor: float = 1.0
) -> Sharpness:
    """Entropy, largest weight and gradient of softmax(q . k / divisor).

    The gradient of weight i with respect to q is a_i (k_i - sum_j a_j k_j) / divisor: the division makes the softmax
    less saturated, and divides the gradient once more.
    """
    weights = torch.softmax(products / divisor, dim=-1)
    mean_key = (weights[:, None] @ keys)[:, 0]
    away = (keys - mean_key[:, None]).square().sum(dim=-1)
    norms = (weights.square() * away).sum(dim=-1).sqrt() / divisor
    return Sharpness(
        entropy=float(attention_entropy(weights).mean()),
        largest=float(weights.amax(dim=-1).mean()),
        reaching=tuple(norms.quantile(torch.tensor(QUARTILES)).tolist()),
    )


class Width(NamedTuple):
    """Random queries and keys of one width: the spread of q . k, and how sharp softmax is with and without scaling."""

    d: int
    variance: float  # of q . k over the pairs; d is expected
    quantiles: tuple[float, ...]  # of q . k, at QUANTILES
    # plain, scaled: softmax over the keys of a query, without and with the division
    plain: Sharpness
    scaled: Sharpness

    @property
    def band(self) -> float:
        """Width of the band with 90% of q . k."""
        return self.quantiles[-1] - self.quantiles[0]


def measure_width(d: int, num_keys: int, count: int = 4096, seed: int = 0) -> Width:
    """Draw `count` pairs for the spread; for softmax as many pairs, at least 256 queries, each with keys of its own."""
    products = dot_products(d, count, seed)
    scores, keys = query_scores(d, max(256, count // max(num_keys, 1)), num_keys, seed)
    return Width(
        d=d,
        variance=float(products.var()),
        quantiles=tuple(products.quantile(torch.tensor(QUANTILES)).tolist()),
        plain=sharpness(scores, keys),
        scaled=sharpness(scores, keys, math.sqrt(d)),
    )


class GaussianTerms(NamedTuple):
    """The three parts of a Gaussian score; their sum is -1/2 ||q - k||^2."""

    product: Float[Tensor, "queries keys"]  # q . k
    key_term: Float[Tensor, "1 keys"]  # -1/2 ||k||^2
    query_term: Float[Tensor, "queries 1"]  # -1/2 ||q||^2

    def total(self) -> Float[Tensor, "queries keys"]:
        """-1/2 ||q - k||^2, the three added."""
        return self.product + self.key_term + self.query_term


def gaussian_scores(
    queries: Float[Tensor, "queries d"], keys: Float[Tensor, "keys d"]
) -> Float[Tensor, "queries keys"]:
    """a(q, k) = -1/2 ||q - k||^2: the exponent of the Gaussian kernel of width 1, by its definition."""
    return -0.5 * (queries[:, None] - keys[None]).square().sum(dim=-1)


def gaussian_terms(queries: Float[Tensor, "queries d"], keys: Float[Tensor, "keys d"]) -> GaussianTerms:
    """-1/2 ||q - k||^2 = q . k - 1/2 ||k||^2 - 1/2 ||q||^2 (Dive into Deep Learning, section "Dot Product Attention").

    The last term is the same for every key of a query. Softmax divides by the sum over the keys, so
    exp(-1/2 ||q||^2) is in numerator and denominator and cancels. The key term would cancel as well if all
    keys had one length, as they nearly do after a layer norm: what is left is the dot product.
    """
    return GaussianTerms(
        product=queries @ keys.T,
        key_term=-0.5 * keys.square().sum(dim=-1)[None],
        query_term=-0.5 * queries.square().sum(dim=-1)[:, None],
    )


class GaussianExample(NamedTuple):
    """One query and random keys in the plane, their scores and weights."""

    query: Float[Tensor, "1 2"]
    keys: Float[Tensor, "keys 2"]
    terms: GaussianTerms
    # softmax of the whole score ("gaussian"), without the query's term ("without-query"), and of the dot product alone
    # ("dot")
    weights: dict[str, Float[Tensor, " keys"]]

    @property
    def dot_change(self) -> float:
        """Largest change of a weight when the dot product replaces the whole score."""
        return float((self.weights["gaussian"] - self.weights["dot"]).abs().max())

    @property
    def query_term_change(self) -> float:
        """Largest change of a weight when the query's term is left out: 0 up to rounding."""
        return float((self.weights["gaussian"] - self.weights["without-query"]).abs().max())

    @property
    def ratio_spread(self) -> float:
        """Largest minus smallest log of a Gaussian weight over that of the dot product: 0 if keys have one length."""
        ratios = (self.weights["gaussian"] / self.weights["dot"]).log()
        return float(ratios.max() - ratios.min())

    @property
    def term_error(self) -> float:
        """max |sum of the terms - score by definition|."""
        return float((self.terms.total() - gaussian_scores(self.query, self.keys)).abs().max())


def gaussian_example(x: float, y: float, num_keys: int, seed: int, one_length: bool) -> GaussianExample:
    """The query (x, y) against keys drawn from N(0, 1) and clamped to -3 .. 3, scaled to one length if wanted."""
    query = torch.tensor([[x, y]])
    keys = torch.randn(num_keys, 2, generator=torch.Generator().manual_seed(seed)).clamp(-3, 3)
    keys = to_one_length(keys) if one_length else keys
    terms = gaussian_terms(query, keys)
    scores = {
        "gaussian": gaussian_scores(query, keys),
        "without-query": terms.product + terms.key_term,
        "dot": terms.product,
    }
    return GaussianExample(query, keys, terms, {name: row_softmax(each)[0] for name, each in scores.items()})


def to_one_length(keys: Float[Tensor, "keys d"]) -> Float[Tensor, "keys d"]:
    """k_j sqrt(mean_l |k_l|^2) / |k_j|: every key at the root mean square of their lengths; the origin stays."""
    lengths = keys.norm(dim=-1, keepdim=True)
    common = keys.square().sum(dim=-1).mean().sqrt()
    return torch.where(lengths > 0, keys / lengths.clamp_min(1e-12) * common, keys)


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
