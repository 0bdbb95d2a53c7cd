"""The Gaussian kernel as three terms: a dot product, the length of the key, and a term that the softmax cancels."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.trace.weights import row_softmax


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
