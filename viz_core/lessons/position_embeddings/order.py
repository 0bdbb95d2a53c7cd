"""Does a scheme know the order? Two numbers: what shuffling changes, and whether an offset has one score."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.lessons.position_embeddings.schemes import Scheme
from viz_core.lessons.position_embeddings.setting import Setting


def order_residual(scheme: Scheme, setting: Setting, order: Int[Tensor, "n"]) -> float:
    """max |f(P X) - P f(X)| of one attention layer f and the permutation P that puts token order[i] at i.

    Near 0 where the layer is permutation-equivariant: it sees a set of tokens, not a sequence.
    """
    shuffled_first = scheme.output(setting.permuted(order))
    shuffled_last = scheme.output(setting)[order]
    return float((shuffled_first - shuffled_last).abs().max())


def offset_spread(scores: Float[Tensor, "*batch n n"]) -> float:
    """How much the scores of one offset differ: the largest max - min along a diagonal j - i = const.

    0 where every offset has one score, wherever in the sequence it is found.
    """
    return float(max((d.amax(-1) - d.amin(-1)).max() for d in _diagonals(scores)))


def is_striped(scores: Float[np.ndarray, "n n"]) -> bool:
    """Whether every offset has one score, up to what float32 loses in sums of a few hundred terms."""
    return offset_spread(torch.from_numpy(scores)) <= 1e-5 * (1 + float(np.abs(scores).max()))


def offset_contrast(scores: Float[Tensor, "*batch n n"]) -> float:
    """How far offsets are told apart: the largest minus the smallest mean of a diagonal, in the clearest head.

    0 where near and far score alike.
    """
    means = torch.stack([d.mean(-1) for d in _diagonals(scores)], dim=-1)
    return float((means.amax(-1) - means.amin(-1)).max())


def _diagonals(scores: Float[Tensor, "*batch n n"]) -> list[Float[Tensor, "*batch length"]]:
    n = scores.shape[-1]
    return [scores.diagonal(offset, dim1=-2, dim2=-1) for offset in range(-n + 1, n)]
