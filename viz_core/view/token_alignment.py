"""Alignment of the tokens of two texts by edit distance, as in the app (alignment.js)."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Float

from viz_core.maps.measures import total_variation

Pairs: TypeAlias = Sequence[tuple[int | None, int | None]]

_NONE = "∅"


def match_tokens(first: Sequence[str], second: Sequence[str]) -> Pairs:
    """Pairs (i, j) of a cheapest edit of one list into another by deletions, insertions and replacements.

    None where one of them has none; an item that is kept or replaced comes first (Wagner and Fischer 1974). With
    D_ij the cost of the first i and j items, D_ij = min(D_(i-1)j + 1, D_i(j-1) + 1, D_(i-1)(j-1) + [a_i != b_j]).
    """
    steps = np.arange(len(second) + 1)
    costs = np.zeros((len(first) + 1, len(second) + 1), dtype=np.int64)
    costs[0] = steps
    differs = np.array([[own != other for other in second] for own in first], dtype=np.int64)
    for i in range(1, len(first) + 1):
        reached = costs[i - 1] + 1
        reached[1:] = np.minimum(reached[1:], costs[i - 1, :-1] + differs[i - 1])
        costs[i] = np.minimum.accumulate(reached - steps) + steps  # and by any number of insertions
    pairs: list[tuple[int | None, int | None]] = []
    i, j = len(first), len(second)
    while i or j:
        if i and j and costs[i, j] == costs[i - 1, j - 1] + differs[i - 1, j - 1]:
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif i and costs[i, j] == costs[i - 1, j] + 1:
            i -= 1
            pairs.append((i, None))
        else:
            j -= 1
            pairs.append((None, j))
    return pairs[::-1]


def joined_names(first: Sequence[str], second: Sequence[str], pairs: Pairs) -> list[str]:
    """ "cat" where both have the same, "cat | dog" where one stands for the other, "∅" for none."""
    named = [(_NONE if i is None else first[i], _NONE if j is None else second[j]) for i, j in pairs]
    return [own if own == other else f"{own} | {other}" for own, other in named]


def subtract_matched(
    first: Float[np.ndarray, "queries keys"], second: Float[np.ndarray, "others them"], rows: Pairs, columns: Pairs
) -> Float[np.ndarray, "rows columns"]:
    """The first map minus the second, over pairs of rows and of columns.

    A key that one text lacks has no weight there; the row of a query that one text lacks is NaN.
    """
    own, other = _aligned(first, second, rows, columns)
    return own - other


def changed_attention(
    first: Float[np.ndarray, "queries keys"], second: Float[np.ndarray, "others them"], rows: Pairs, columns: Pairs
) -> float | None:
    """Mean total variation distance between the rows that both texts have, 0 to 1 (`total_variation`).

    None where they have no row in common.
    """
    shared = [(i, j) for i, j in rows if i is not None and j is not None]
    own, other = _aligned(first, second, shared, columns)
    return float(total_variation(torch.from_numpy(own), torch.from_numpy(other))) if shared else None


def _aligned(
    first: Float[np.ndarray, "queries keys"], second: Float[np.ndarray, "others them"], rows: Pairs, columns: Pairs
) -> tuple[Float[np.ndarray, "rows columns"], Float[np.ndarray, "rows columns"]]:
    """Both maps over the pairs of rows and columns: 0 for a key that one lacks, NaN for a query."""
    padded = [np.pad(weights, ((0, 1), (0, 1))) for weights in (first, second)]
    for weights in padded:
        weights[-1] = np.nan
    own, other = (weights[np.ix_(_places(rows, side), _places(columns, side))] for side, weights in enumerate(padded))
    return own, other


def _places(pairs: Pairs, side: int) -> list[int]:
    """Rows or columns of one map; -1, the padding, for None."""
    return [-1 if (place := pair[side]) is None else place for pair in pairs]
