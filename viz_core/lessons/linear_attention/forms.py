"""A stream through one rule: the map, the states, the outputs and their costs, and what a decay leaves."""

from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.attention.linear import LinearOperator, retention, retention_decay

CHUNK = 4


class Forms(NamedTuple):
    """The same layer as a matrix and as a state."""

    map: Float[Tensor, "n n"]
    states: Float[Tensor, "n d v"]
    outputs: Float[Tensor, "n v"]
    map_error: float
    chunk_error: float
    later_weight: float


def all_forms(operator: LinearOperator, values: Float[Tensor, "n v"], broken: bool = False) -> Forms:
    """Return every form of a layer of one head, and how far they are apart, relative to the outputs' norm.

    Args:
        broken: whether the map leaves out the removal, which the recurrence keeps: it writes b v in place of
            b (v - what the state returned).
    """
    all_values = values[None, None]
    weights = (replace(operator, erases=False) if broken else operator).map()
    states, outputs = operator.states(all_values), operator.recurrent(all_values)
    whole = relative_error(weights @ all_values, outputs)
    chunks = relative_error(operator.chunked(all_values, CHUNK), outputs)
    return Forms(weights[0, 0], states[0, 0], outputs[0, 0], whole, chunks, float(weights.triu(1).abs().max()))


def relative_error(found: Tensor, expected: Tensor) -> float:
    """Norm of the difference divided by the norm of what is expected."""
    return float((found - expected).norm() / expected.norm())


def decay_by_age(num_heads: int, num_ages: int) -> Float[Tensor, "heads ages"]:
    """Return g^age of each head's decay g, for ages 0, 1, ... (RetNet: Sun 2023, equation 8)."""
    return retention_decay(num_heads).double()[:, None] ** torch.arange(num_ages)


def map_error(num_heads: int, num_tokens: int = 64, width: int = 8) -> float:
    """Largest difference of a retention map of random queries and keys from g^(t - s) q_t . k_s."""
    draw = torch.Generator().manual_seed(0)
    queries, keys = (
        torch.randn(1, num_heads, num_tokens, width, generator=draw, dtype=torch.float64) for _ in range(2)
    )
    places = torch.arange(num_tokens)
    ages = (places[:, None] - places).clamp_min(0)
    expected = (queries @ keys.mT * decay_by_age(num_heads, num_tokens)[:, ages]).tril()
    return float((retention(queries, keys, retention_decay(num_heads).double()).map() - expected).abs().max())


class HeadCost(NamedTuple):
    """Multiplications for all tokens, and numbers kept for the next, of one causal head."""

    softmax: int
    linear: int
    cache: int
    state: int


def head_cost(num_tokens: int, width: int) -> HeadCost:
    """Return the costs of n tokens and width d (Katharopoulos 2020, section 3.2).

    softmax: n (n + 1) d, for each query with each key up to it, and with each value; linear: 2 n d^2, to write and to
    read the state. Kept: 2 n d keys and values, or a state of d^2.
    """
    return HeadCost(num_tokens * (num_tokens + 1) * width, 2 * num_tokens * width**2, 2 * num_tokens * width, width**2)
