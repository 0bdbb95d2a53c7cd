"""Times in figures: a point for the fastest run, a line up to the slowest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ui.compute.benchmark import Measurement


def milliseconds(measurements: Sequence[Measurement]) -> dict[str, Any]:
    """`y` and `error_y` of a scatter: the fastest run of each measurement taken, and the way to its slowest."""
    taken = [m for m in measurements if m.seconds is not None]
    fastest = np.array([m.seconds for m in taken], dtype=np.float32) * 1000
    slowest = np.array([m.slowest if m.slowest is not None else m.seconds for m in taken], dtype=np.float32) * 1000
    above = {"type": "data", "symmetric": False, "array": slowest - fastest, "arrayminus": np.zeros_like(fastest)}
    return {"y": fastest, "error_y": {**above, "thickness": 1, "width": 3}}
