"""Tokens of two texts that stand for each other, and the difference of two maps over them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from viz_core.view.responses import changed_attention, joined_names, match_tokens, subtract_matched

TEXTS = st.lists(st.sampled_from("abc"), max_size=6)


def distance(first: list[str], second: list[str]) -> int:
    """Edits between two lists, by the recursion itself."""

    @cache
    def d(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        return min(d(i - 1, j) + 1, d(i, j - 1) + 1, d(i - 1, j - 1) + (first[i - 1] != second[j - 1]))

    return d(len(first), len(second))


@given(TEXTS, TEXTS)
def test_no_way_from_one_text_to_the_other_is_cheaper(first: list[str], second: list[str]) -> None:
    pairs = match_tokens(first, second)
    assert [i for i, _ in pairs if i is not None] == list(range(len(first)))
    assert [j for _, j in pairs if j is not None] == list(range(len(second)))
    assert sum(i is None or j is None or first[i] != second[j] for i, j in pairs) == distance(first, second)


def test_a_word_replaced_and_one_put_in_by_hand() -> None:
    first, second = "the cat sat".split(), "the dog sat down".split()
    pairs = match_tokens(first, second)
    assert pairs == [(0, 0), (1, 1), (2, 2), (None, 3)]
    assert joined_names(first, second, pairs) == ["the", "cat | dog", "sat", "∅ | down"]
    first, second = "le chat noir dort".split(), "le chien dort".split()  # of two cheapest ways the app's
    assert joined_names(first, second, match_tokens(first, second)) == ["le", "chat | ∅", "noir | chien", "dort"]


def test_a_key_that_one_text_lacks_has_no_weight_there_and_a_query_has_nothing_to_compare() -> None:
    first, second = np.array([[0.5, 0.5]]), np.array([[0.25, 0.5, 0.25], [1.0, 0.0, 0.0]])
    found = subtract_matched(first, second, [(0, 0), (None, 1)], [(0, 0), (1, 1), (None, 2)])
    np.testing.assert_array_equal(found, [[0.25, 0.0, -0.25], [np.nan] * 3])


def test_change_is_total_variation_over_the_rows_that_both_have() -> None:
    first = np.array([[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]])
    second = np.array([[0.5, 0.5, 0.0], [0.0, 0.75, 0.25]])
    rows = [(0, 0), (1, None), (2, 1)]
    columns = [(0, 0), (None, 1), (1, 2)]  # a key that the first lacks has no weight there
    # Row 0: |1 - 1/2| + |0 - 1/2| + 0 = 1; row 2: 1/4 + 3/4 + |3/4 - 1/4| = 3/2; mean, halved
    assert changed_attention(first, second, rows, columns) == pytest.approx((1 + 1.5) / 2 / 2)
    assert changed_attention(first, second, [(0, None)], columns) is None
