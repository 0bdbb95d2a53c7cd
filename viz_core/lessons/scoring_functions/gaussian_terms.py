"""The Gaussian kernel taken apart: a dot product, the key's length, and a term that cancels."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.attention.scores.products import check_same_width


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
    """a(q, k) = -1/2 ||q - k||^2: the exponent of the Gaussian kernel of width 1, by its definition.

    Raises:
        ValueError: if queries and keys differ in width.
    """
    check_same_width(queries, keys)
    return -0.5 * (queries[:, None] - keys[None]).square().sum(dim=-1)


def gaussian_terms(queries: Float[Tensor, "queries d"], keys: Float[Tensor, "keys d"]) -> GaussianTerms:
    """-1/2 ||q - k||^2 = q . k - 1/2 ||k||^2 - 1/2 ||q||^2 (Dive into Deep Learning, section "Dot Product Attention").

    The last term is the same for every key of a query. Softmax divides by the sum over the keys, so
    exp(-1/2 ||q||^2) stands above and below and cancels. The key term would cancel as well if all
    keys had one length, as they nearly do after a layer norm: what is left is the dot product.

    Raises:
        ValueError: if queries and keys differ in width.
    """
    check_same_width(queries, keys)
    return GaussianTerms(
        product=queries @ keys.T,
        key_term=-0.5 * keys.square().sum(dim=-1)[None],
        query_term=-0.5 * queries.square().sum(dim=-1)[:, None],
    )


def to_one_length(keys: Float[Tensor, "keys d"]) -> Float[Tensor, "keys d"]:
    """k_j sqrt(mean_l |k_l|^2) / |k_j|: every key at the root mean square of their lengths; the origin stays."""
    lengths = keys.norm(dim=-1, keepdim=True)
    common = keys.square().sum(dim=-1).mean().sqrt()
    return torch.where(lengths > 0, keys / lengths.clamp_min(1e-12) * common, keys)
