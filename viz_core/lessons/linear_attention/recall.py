"""Associative recall: how many key-value pairs a state can hold, without any training."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from viz_core.runtime.interruption import may_end
from viz_core.trace import attention_weights
from viz_core.trace.arguments import check_whole

PAIRS = (2, 4, 8, 12, 16, 24, 32, 48, 64, 96)
_DRAWS, _SHARPNESS = 8, 30.0


class Recall(NamedTuple):
    """Shares of keys whose own value is returned, by number of pairs in `PAIRS`."""

    softmax: tuple[float, ...]
    delta: tuple[float, ...]
    sum: tuple[float, ...]


def recall_accuracy(width: int, writes: int = 1, seed: int = 0) -> Recall:
    """Return the recall of softmax attention, the delta rule and plain sums of random pairs of a width d.

    Keys and values are random vectors of length 1. After all are written, each key is asked for. What is returned is
    right if, of all values, its product with the key's last one is the largest. Means of 8 draws. The states have d x d
    numbers; softmax attention has no positions, keeps every pair and multiplies scores by 30.

    Args:
        writes: how often each key is written, each time with another value.

    Raises:
        ValueError: if a number is below 1.
    """
    check_whole(width=width, writes=writes)
    draw = torch.Generator().manual_seed(seed)
    rows = []
    for pairs in PAIRS:
        may_end()
        wanted, values = (
            F.normalize(torch.randn(_DRAWS, 1, count, width, generator=draw, dtype=torch.float64), dim=-1)
            for count in (pairs, pairs * writes)
        )
        keys = wanted.repeat(1, 1, writes, 1)
        # The last state, from products of the keys: w solves (I + L) w = v.
        overlaps = (keys @ keys.mT).tril(-1)
        written = torch.linalg.solve_triangular(overlaps, values, upper=False, unitriangular=True)
        weights = attention_weights(wanted, keys, scale=_SHARPNESS).to(values)
        answers = (weights @ values, wanted @ (keys.mT @ written), wanted @ (keys.mT @ values))
        rows.append([_right(each, values, pairs) for each in answers])
    softmax, delta, plain = zip(*rows, strict=True)
    return Recall(softmax, delta, plain)


def _right(answers: Tensor, values: Tensor, pairs: int) -> float:
    best = (answers @ values.mT).argmax(dim=-1)
    return float((best == torch.arange(values.shape[2])[-pairs:]).double().mean())
