"""A source and its translation in one sequence: who may look at whom, with an encoder and without one."""

from __future__ import annotations

from jaxtyping import Bool
from torch import Tensor

from viz_core.trace.weights import causal_mask

Seen = Bool[Tensor, "tokens tokens"]


def with_encoder(source: int, target: int) -> Seen:
    """Encoder and decoder as one map: the source looks at all of the source, the target at it and at what is written.

    Each row is a token that looks, the source's first. (Raffel 2020, figure 4: the prefix language model has this map
    in one stack.)
    """
    seen = one_stack(source, target)
    seen[:source, :source] = True
    return seen


def one_stack(source: int, target: int) -> Seen:
    """A decoder alone, which reads the source as it writes: no token looks at a later one.

    Raises:
        ValueError: if there is no token of either.
    """
    if source < 1 or target < 1:
        raise ValueError(f"expected at least 1 token of each, got {source} and {target}")
    return causal_mask(source + target, source + target)
