"""Attention masks over a source and its translation, with an encoder and without one."""

from jaxtyping import Bool
from torch import Tensor

from viz_core.trace.weights import causal_mask

Seen = Bool[Tensor, "tokens tokens"]


def with_encoder(source: int, target: int) -> Seen:
    """Mask of encoder and decoder: the source attends to the source, the target to it and to earlier targets.

    Each row is a token that looks, the source's first. (Raffel 2020, figure 4: the prefix language model has this map
    in one stack.)
    """
    seen = one_stack(source, target)
    seen[:source, :source] = True
    return seen


def one_stack(source: int, target: int) -> Seen:
    """Mask of a decoder alone: no token attends to a later one."""
    return causal_mask(source + target, source + target)
