"""Whether a scheme sees the order of tokens: what shuffling changes, and what the offset alone explains."""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.lessons.position_embeddings.shared_layer import SharedLayer
from viz_core.positional.entry import SchemeEntry


def order_changes(scheme: SchemeEntry, layer: SharedLayer, order: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
    """Largest entry of |f(P X) - P f(X)| for each token, in the new order.

    f is one attention layer, P the permutation that puts token order[i] at i. Near 0 where the layer is
    permutation-equivariant: it sees a set of tokens, not a sequence.
    """
    shuffled_first = layer.permuted(order).output(scheme)
    shuffled_last = layer.output(scheme)[order]
    return (shuffled_first - shuffled_last).abs().amax(dim=-1)


def offset_spread(scores: Float[Tensor, "*batch n n"]) -> float:
    """How much the scores of one offset differ: the largest max - min along a diagonal j - i = const.

    0 where every offset has one score, at any place in the sequence.
    """
    return float(max((d.amax(-1) - d.amin(-1)).max() for d in _diagonals(scores)))


def is_striped(scores: Float[np.ndarray, "n n"]) -> bool:
    """Whether every offset has one score, up to what float32 loses in sums of a few hundred terms."""
    return offset_spread(torch.from_numpy(scores)) <= 1e-5 * (1 + float(np.abs(scores).max()))


def offset_share(similarity: Float[Tensor, "n n"]) -> float:
    """1 - sum (s_ij - m_(j-i))^2 / sum (s_ij - m)^2: the share of a map's variance that the offset alone explains.

    m_o is the mean of the diagonal j - i = o and m that of the map; 1 for a map that is constant on each diagonal.
    """
    n = similarity.shape[0]
    explained = torch.empty_like(similarity)
    for offset in range(-n + 1, n):
        mean = similarity.diagonal(offset).mean()
        explained.diagonal(offset).fill_(mean)
    return float(1 - (similarity - explained).square().sum() / (similarity - similarity.mean()).square().sum())


def table_offset_share(table: Float[Tensor, "n d"]) -> float:
    """`offset_share` of P P^T; 1 for a single position."""
    return offset_share(table @ table.T) if len(table) > 1 else 1.0


def _diagonals(scores: Float[Tensor, "*batch n n"]) -> list[Float[Tensor, "*batch length"]]:
    n = scores.shape[-1]
    return [scores.diagonal(offset, dim1=-2, dim2=-1) for offset in range(-n + 1, n)]
