"""A word's embedding plus its position: the same word at two places becomes two vectors."""

from collections.abc import Sequence
from typing import NamedTuple

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from viz_core.positional.sinusoidal import sinusoidal_table


class Added(NamedTuple):
    """What a Transformer's first block receives, and the two parts it is made of."""

    embedding: Float[Tensor, "tokens num_hiddens"]
    position: Float[Tensor, "tokens num_hiddens"]
    total: Float[Tensor, "tokens num_hiddens"]


class Twins(NamedTuple):
    """One token at two positions, and the cosine of its two vectors without and with the positions."""

    first: int
    second: int
    before: float
    after: float


def add_positions(embedding: Float[Tensor, "tokens num_hiddens"]) -> Added:
    """X + P (Vaswani 2017, section 3.5), with X as the model scales it."""
    position = sinusoidal_table(*embedding.shape, dtype=embedding.dtype).to(embedding.device)
    return Added(embedding, position, embedding + position)


def find_twins(tokens: Sequence[int], added: Added) -> Twins | None:
    """The first token that appears a second time, or None."""
    for second, token in enumerate(tokens):
        first = list(tokens).index(token)
        if first < second:
            before, after = (float(F.cosine_similarity(X[first], X[second], dim=0)) for X in (added[0], added[2]))
            return Twins(first, second, before, after)
    return None
