"""Why scores are divided by sqrt(d): what wide vectors do to a softmax."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.lessons.scoring_functions.softmax_gradient import jacobian_norm
from viz_core.maps.measures import attention_entropy

# Quantiles of a distribution that a band shows: 90% and 50% of all lie within, and the median.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def dot_products(d: int, count: int, seed: int = 0) -> Float[Tensor, "count"]:
    """q . k of independent q and k whose d entries are drawn from N(0, 1): mean 0, variance d.

    E[q_i k_i] = 0 and E[(q_i k_i)^2] = 1, and d such terms are added (Vaswani 2017, footnote 4).

    Raises:
        ValueError: if d or count is < 1.
    """
    if d < 1 or count < 1:
        raise ValueError(f"d and count: expected at least 1, got {d} and {count}")
    generator = torch.Generator().manual_seed(seed)
    queries = torch.randn(count, d, generator=generator)
    keys = torch.randn(count, d, generator=generator)
    return (queries * keys).sum(dim=-1)


def variance_error_allowed(d: int, count: int) -> float:
    """Six standard errors of a sample's variance / d: (2 + 6 / d) / count is its variance.

    The product of two standard normal numbers has excess kurtosis 6, the sum of d of them 6 / d.
    """
    return 6 * math.sqrt((2 + 6 / d) / count)


@dataclass(frozen=True, eq=False)
class Sharpness:
    """How one-sided softmax is over random keys at a width d, means over many queries.

    Attributes:
        entropy: of the weights, in bits: log2(keys) where all are alike, 0 where one has it all.
        largest: the largest weight, 1 / keys to 1.
        passed: norm of the softmax's Jacobian: how much gradient still comes through.
    """

    entropy: float
    largest: float
    passed: float


def sharpness(scores: Float[Tensor, "queries keys"]) -> Sharpness:
    """Entropy, largest weight and Jacobian norm of softmax(scores), means over the queries."""
    weights = torch.softmax(scores, dim=-1)
    return Sharpness(
        entropy=float(attention_entropy(weights).mean()),
        largest=float(weights.amax(dim=-1).mean()),
        passed=float(jacobian_norm(weights).mean()),
    )


@dataclass(frozen=True, eq=False)
class Width:
    """Random queries and keys of one width: the spread of q . k, and how sharp softmax is with and without scaling.

    Attributes:
        variance: of q . k over the sample; d is expected.
        quantiles: of q . k, at QUANTILES.
    """

    d: int
    variance: float
    quantiles: tuple[float, ...]
    plain: Sharpness
    scaled: Sharpness


def measure_width(d: int, num_keys: int, count: int = 4096, seed: int = 0) -> Width:
    """Draw `count` pairs for the spread, and as many scores in rows of `num_keys` for the softmax.

    A row's scores are independent pairs too: with one query for a whole row, its length would blur
    the effect of the width.

    Raises:
        ValueError: if d or num_keys is < 1, or count does not reach for one row.
    """
    if not 1 <= num_keys <= count:
        raise ValueError(f"num_keys: expected 1 to {count}, got {num_keys}")
    products = dot_products(d, count, seed)
    rows = products[: count // num_keys * num_keys].reshape(-1, num_keys)
    return Width(
        d=d,
        variance=float(products.var()),
        quantiles=tuple(products.quantile(torch.tensor(QUANTILES)).tolist()),
        plain=sharpness(rows),
        scaled=sharpness(rows / math.sqrt(d)),
    )
