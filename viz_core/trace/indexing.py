"""One rule for what may stand where a part of a map is asked for: numbers, slices, ranges."""

from __future__ import annotations

import operator
from typing import Any, SupportsIndex, TypeAlias, TypeGuard

import numpy as np
import torch

Index: TypeAlias = SupportsIndex | slice | range | None


def is_index(index: Any) -> TypeGuard[SupportsIndex]:
    """Whether it is one place: an int, numpy's or a tensor's; no truth value."""
    if isinstance(index, bool | np.bool) or getattr(index, "dtype", None) == torch.bool:
        return False
    try:
        operator.index(index)
    except TypeError:  # what looks like one, as an array of several or of floats does
        return False
    return True


def index_range(index: Index, size: int, name: str) -> range:
    """The places, from 0 to size - 1 and in order, that an index asks for; a number is a range of one.

    Raises:
        IndexError: if there is no such place, it is no index, or the places go backwards.
    """
    if index is None:
        return range(size)
    if is_index(index):
        place = operator.index(index)
        if not -size <= place < size:
            raise IndexError(f"{name}: expected 0 to {size - 1}, got {place}")
        return range(place % size, place % size + 1)
    if isinstance(index, slice):
        if not all(part is None or is_index(part) for part in (index.start, index.stop, index.step)):
            raise IndexError(f"{name}: expected a slice of whole numbers, got {index}")
        if index.step is not None and operator.index(index.step) < 1:
            raise IndexError(f"{name}: expected places in order, got step {index.step}")
        found = range(*index.indices(size))
    elif isinstance(index, range):
        found = index
        if len(found) and not (0 <= found[0] < size and 0 <= found[-1] < size):
            raise IndexError(f"{name}: expected places from 0 to {size - 1}, got {index}")
    else:
        raise IndexError(f"{name}: expected a number, a slice or a range, got {type(index).__name__}")
    if found.step < 0:
        raise IndexError(f"{name}: expected places in order, got step {found.step}")
    return found if len(found) else range(0)
