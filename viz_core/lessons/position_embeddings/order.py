"""Whether a scheme sees the order of tokens: what shuffling changes, and whether an offset has one score."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.lessons.position_embeddings.shared_layer import SharedLayer
from viz_core.positional.entry import SchemeEntry, SchemeSizes
from viz_core.positional.register import SCHEMES


def order_residual(scheme: SchemeEntry, layer: SharedLayer, order: Int[Tensor, " n"]) -> float:
    """max |f(P X) - P f(X)| of one attention layer f and the permutation P that puts token order[i] at i.

    Near 0 where the layer is permutation-equivariant: it sees a set of tokens, not a sequence.
    """
    return float(order_changes(scheme, layer, order).max())


def order_changes(scheme: SchemeEntry, layer: SharedLayer, order: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
    """Largest entry of |f(P X) - P f(X)| for each token, in the new order."""
    shuffled_first = layer.permuted(order).output(scheme)
    shuffled_last = layer.output(scheme)[order]
    return (shuffled_first - shuffled_last).abs().amax(dim=-1)


def order_residuals(layer: SharedLayer, order: Int[Tensor, " n"]) -> dict[str, float]:
    """`order_residual` of every scheme of the register, by its name."""
    return {scheme.name: order_residual(scheme, layer, order) for scheme in SCHEMES}


def reversed_order(labels: Sequence[str]) -> Int[Tensor, " n"]:
    """The order that reads the tokens backwards: n - 1, ..., 0."""
    return torch.arange(len(labels)).flip(0)


def is_equivariant(scheme: SchemeEntry, sizes: SchemeSizes, order: Int[Tensor, " n"]) -> bool:
    """Whether f(P X) = P f(X) follows from what the scheme depends on: the residual of `order_residual` is 0.

    True of every order without positions, and of the reversed one where only distances count: there is no causal mask.
    """
    if scheme.depends_on == "nothing" or scheme.is_constant(sizes):
        return True
    return scheme.depends_on == "distance" and torch.equal(order, torch.arange(len(order)).flip(0))


def offset_spread(scores: Float[Tensor, "*batch n n"]) -> float:
    """How much the scores of one offset differ: the largest max - min along a diagonal j - i = const.

    0 where every offset has one score, at any place in the sequence.
    """
    return float(max((d.amax(-1) - d.amin(-1)).max() for d in _diagonals(scores)))


def is_striped(scores: Float[np.ndarray, "n n"]) -> bool:
    """Whether every offset has one score, up to what float32 loses in sums of a few hundred terms."""
    return offset_spread(torch.from_numpy(scores)) <= 1e-5 * (1 + float(np.abs(scores).max()))


def offset_contrast(scores: Float[Tensor, "*batch n n"]) -> float:
    """Largest minus smallest mean of a diagonal, in the head where this is largest.

    0 where all offsets score alike on average.
    """
    means = torch.stack([d.mean(-1) for d in _diagonals(scores)], dim=-1)
    return float((means.amax(-1) - means.amin(-1)).max())


def _diagonals(scores: Float[Tensor, "*batch n n"]) -> list[Float[Tensor, "*batch length"]]:
    n = scores.shape[-1]
    return [scores.diagonal(offset, dim1=-2, dim2=-1) for offset in range(-n + 1, n)]
