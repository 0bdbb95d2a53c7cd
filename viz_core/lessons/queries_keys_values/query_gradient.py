"""The derivative of attention by its query, and a search engine that learns from clicks by it."""

from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.trace import attention_weights

Vector: TypeAlias = Float[Tensor, " d"]
Keys: TypeAlias = Float[Tensor, "keys d"]


def pooled(query: Vector, keys: Keys, temperature: float = 1.0) -> Vector:
    """sum_i a_i k_i with a = softmax(K q / T): the keys are their own values."""
    return query_weights(query, keys, temperature) @ keys


def query_jacobian(query: Vector, keys: Keys, temperature: float = 1.0) -> Float[Tensor, "d d"]:
    """d output / d query of `pooled`, by automatic differentiation."""
    return torch.func.jacrev(lambda q: pooled(q, keys, temperature))(query)


def weighted_covariance(query: Vector, keys: Keys, temperature: float = 1.0) -> Float[Tensor, "d d"]:
    """sum_i a_i (k_i - m)(k_i - m)^T with m = sum_i a_i k_i; divided by T it is the Jacobian of `pooled`.

    (Dive into Deep Learning, section 11.1, exercise 2.)
    """
    weights = query_weights(query, keys, temperature)
    centred = keys - weights @ keys
    return centred.T @ (weights[:, None] * centred)


def query_weights(query: Vector, keys: Keys, temperature: float) -> Float[Tensor, " keys"]:
    """a = softmax(K q / T)."""
    return attention_weights(query[None, None, None], keys[None, None], scale=1 / temperature)[0, 0, 0]


_RATE = 0.25  # of the way that the gradient at temperature 1 shows


def click_loss(query: Vector, documents: Keys, clicked: int, temperature: float = 1.0) -> Float[Tensor, ""]:
    """-log a_c with a = softmax(K q / T): small where the document that was clicked has most of the weight."""
    return -query_weights(query, documents, temperature)[clicked].log()


def ranks_while_learning(
    query: Vector, documents: Keys, clicked: int, temperature: float = 1.0, steps: int = 20
) -> list[int]:
    """Rank of the clicked document, 1 for the first, before and after each step down the gradient of its loss.

    Ties count against it: with the lowest score it ranks last.

    (Dive into Deep Learning, section 11.1, exercise 3.)
    """
    ranks = []
    for _ in range(steps + 1):
        scores = documents @ query
        ranks.append(int((scores >= scores[clicked] - 1e-12).sum()))
        gradient = torch.func.grad(lambda q: click_loss(q, documents, clicked, temperature))(query)
        query = query - _RATE * temperature * gradient
    return ranks
