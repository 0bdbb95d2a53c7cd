"""Films with numbers that can be checked by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from viz_core.tasks import Plan, Shape
from viz_core.tasks.film import Film


def made_film(maps: np.ndarray, read: Sequence[str], held_out: Sequence[float], accuracy: Sequence[float] = ()) -> Film:
    """Shots every ten updates of these maps, (shots, layers, heads, n, n)."""
    updates = 10 * (len(maps) - 1)
    right = np.array(accuracy or [0.0] * updates, np.float32)
    return Film(
        Plan("repeat", Shape(num_layers=maps.shape[1], num_heads=maps.shape[2])),
        np.ones(updates, np.float32),
        right,
        tuple(range(0, updates + 1, 10)),
        np.array(held_out, np.float32),
        maps.astype(np.float16),
        np.ones(maps.shape[:-1], np.float16),
        np.zeros((0, 0), np.float16),
        tuple(read),
        ("",) * len(read),
    )
