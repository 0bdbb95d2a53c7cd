"""Indices of a part of a map: numbers, slices, ranges."""

import operator
from typing import Any, SupportsIndex, TypeAlias, TypeGuard

import numpy as np
import torch

Index: TypeAlias = SupportsIndex | slice | range | None


def is_index(index: Any) -> TypeGuard[SupportsIndex]:
    """Whether it is one integer: Python's, numpy's or a tensor's; no boolean."""
    if isinstance(index, bool | np.bool) or getattr(index, "dtype", None) == torch.bool:
        return False
    try:
        operator.index(index)
    except TypeError:  # raised also by arrays of several numbers or of floats
        return False
    return True


def index_range(index: Index, size: int, name: str) -> range:
    """Return the range, from 0 to size - 1 and ascending, that an index selects; a number is a range of one.

    IndexError if the index is out of range, is not an index, or descends.
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
