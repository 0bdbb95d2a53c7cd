"""The largest change of a number over a run, and the head with the most of a measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True)
class Jump:
    """Where a number changes most from one shot to the next: after update `before`, until `after`, by `change`."""

    before: int
    after: int
    change: float


def largest_jump(shots: Sequence[int], values: Float[np.ndarray, " shots"]) -> Jump | None:
    """The largest change of a number between two shots; the earlier of two as large; None with fewer than two."""
    if len(shots) < 2:
        return None
    changes = np.diff(values.astype(np.float64))
    place = int(np.abs(changes).argmax())
    return Jump(shots[place], shots[place + 1], float(changes[place]))


def strongest_head(measured: Float[np.ndarray, "shots layers heads"]) -> tuple[int, int]:
    """Layer and head with the most of a measure at the last shot."""
    layer, head = np.unravel_index(int(measured[-1].argmax()), measured.shape[1:])
    return int(layer), int(head)
