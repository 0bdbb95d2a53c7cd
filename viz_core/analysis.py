"""Measures on attention maps: what a head does, in one number."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor


def attention_entropy(weights: Float[Tensor, "*batch queries keys"]) -> Float[Tensor, "*batch queries"]:
    """Entropy of each query's attention in bits: 0 for one key, log2(keys) for all keys alike.

    H_i = - sum_j w_ij log2 w_ij, with 0 log 0 = 0 (Shannon 1948, section 6).

    A row of zeros (every key masked) has entropy 0.

    Raises:
        ValueError: if a row holds a negative weight.
    """
    if weights.numel() and (smallest := weights.amin().item()) < 0:
        raise ValueError(f"weights: expected none below 0, got {smallest:.3g}")
    nats = 0.0 - torch.xlogy(weights, weights).sum(dim=-1)  # not -x, which would make -0 of 0
    # A softmax may round its largest weight to a hair above 1, whose term would be a hair below 0.
    return (nats / math.log(2)).clamp_min(0.0)


def diagonal_mass(weights: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch"]:
    """Share of its attention that a token gives to itself, mean over tokens: 0 to 1.

    D = 1/n sum_i w_ii (Clark 2019, "What Does BERT Look At?", section 3).

    Raises:
        ValueError: if queries and keys are not equally many, or there are none.
    """
    if weights.dim() < 2 or weights.shape[-2] != weights.shape[-1] or not weights.shape[-1]:
        raise ValueError(f"weights: expected as many queries as keys, got shape {tuple(weights.shape)}")
    return weights.diagonal(dim1=-2, dim2=-1).mean(dim=-1)


def query_information(weights: Float[Tensor, "*batch queries keys"]) -> Float[Tensor, "*batch"]:
    """How much knowing the query tells about the key it looks at, in bits: 0 where all rows are alike.

    I = H(mean_i w_i) - mean_i H(w_i): the mutual information of query and key when every query is
    equally likely (Cover and Thomas 2006, equation 2.45). A head that aligns two sentences word by
    word has much of it; a head that always looks at one place has none, however sharp it is.

    Raises:
        ValueError: if a row holds a negative weight, or there is no query.
    """
    if weights.dim() < 2 or not weights.shape[-2]:
        raise ValueError(f"weights: expected at least one query, got shape {tuple(weights.shape)}")
    mean_row = weights.mean(dim=-2, keepdim=True)
    information = attention_entropy(mean_row)[..., 0] - attention_entropy(weights).mean(dim=-1)
    return information.clamp_min(0.0)
