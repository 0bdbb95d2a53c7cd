"""Edit distances against published examples, a slow recursion, and what must hold of any distance."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viz_core.lessons.queries_keys_values.lookup import (
    beginning_distance,
    edit_distance,
    edit_table,
)

words = st.text(alphabet="abc", max_size=5)


@cache
def by_recursion(a: str, b: str) -> int:
    """Levenshtein's definition, without a table."""
    if not a or not b:
        return len(a) + len(b)
    if a[0] == b[0]:
        return by_recursion(a[1:], b[1:])
    return 1 + min(by_recursion(a[1:], b), by_recursion(a, b[1:]), by_recursion(a[1:], b[1:]))


@pytest.mark.parametrize(
    ("a", "b", "edits"),
    [
        ("kitten", "sitting", 3),
        ("Saturday", "Sunday", 3),
        ("Li", "Lipton", 4),
        ("Li", "Hu", 2),
        ("", "abc", 3),
        ("", "", 0),
    ],
)
def test_known_distances(a: str, b: str, edits: int) -> None:
    assert edit_distance(a, b) == edits


def test_the_table_by_hand() -> None:
    assert edit_table("Li", "Lip") == [[0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1]]


@given(a=words, b=words)
def test_against_recursion(a: str, b: str) -> None:
    assert edit_distance(a, b) == by_recursion(a, b)


@given(a=words, b=words, c=words)
def test_is_a_distance(a: str, b: str, c: str) -> None:
    assert (edit_distance(a, b) == 0) == (a == b)
    assert edit_distance(a, b) == edit_distance(b, a)
    assert edit_distance(a, c) <= edit_distance(a, b) + edit_distance(b, c)


@given(query=words, key=words)
def test_the_best_beginning(query: str, key: str) -> None:
    assert beginning_distance(query, key) == min(edit_distance(query, key[:j]) for j in range(len(key) + 1))
    assert (beginning_distance(query, key) == 0) == key.startswith(query)
