"""What attention is worth by the length of the sentence."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise


def keeps_rising(numbers: Sequence[float]) -> bool:
    """Whether each number is larger than the one before."""
    return all(after > before for before, after in pairwise(numbers))
