"""Two texts side by side: which tokens of one stand where which of the other do, as in the app (matched.js)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from jaxtyping import Float

Pairs: TypeAlias = list[tuple[int | None, int | None]]

_NONE = "∅"


def match_tokens(first: Sequence[str], second: Sequence[str]) -> Pairs:
    """Pairs (i, j) of a cheapest way from one list to another by leaving out, putting in and replacing one at a time.

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
    pairs: Pairs = []
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

    A key that one text lacks has no weight there; of a query that one text lacks there is nothing to compare: NaN.
    """
    own, other = (_laid_out(weights, rows, columns, side) for side, weights in enumerate((first, second)))
    return own - other


def _laid_out(
    weights: Float[np.ndarray, "queries keys"], rows: Pairs, columns: Pairs, side: int
) -> Float[np.ndarray, "rows columns"]:
    laid = np.full((len(rows), len(columns)), np.nan, dtype=weights.dtype)
    for place, row in enumerate(pair[side] for pair in rows):
        if row is not None:
            laid[place] = [0 if column is None else weights[row, column] for column in (pair[side] for pair in columns)]
    return laid
