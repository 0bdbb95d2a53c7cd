"""The derivative of attention by its query: the covariance of the keys under the weights."""

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.trace import attention_weights


def pooled(query: Float[Tensor, " d"], keys: Float[Tensor, "keys d"], temperature: float = 1.0) -> Float[Tensor, " d"]:
    """sum_i a_i k_i with a = softmax(K q / T): the keys are their own values."""
    return query_weights(query, keys, temperature) @ keys


def query_jacobian(
    query: Float[Tensor, " d"], keys: Float[Tensor, "keys d"], temperature: float = 1.0
) -> Float[Tensor, "d d"]:
    """d output / d query of `pooled`, by automatic differentiation."""
    return torch.func.jacrev(lambda q: pooled(q, keys, temperature))(query)


def weighted_covariance(
    query: Float[Tensor, " d"], keys: Float[Tensor, "keys d"], temperature: float = 1.0
) -> Float[Tensor, "d d"]:
    """sum_i a_i (k_i - m)(k_i - m)^T with m = sum_i a_i k_i; divided by T it is the Jacobian of `pooled`.

    (Dive into Deep Learning, section 11.1, exercise 2.)
    """
    weights = query_weights(query, keys, temperature)
    centred = keys - weights @ keys
    return centred.T @ (weights[:, None] * centred)


def query_weights(
    query: Float[Tensor, " d"], keys: Float[Tensor, "keys d"], temperature: float
) -> Float[Tensor, " keys"]:
    """a = softmax(K q / T)."""
    return attention_weights(query[None, None, None], keys[None, None], scale=1 / temperature)[0, 0, 0]
