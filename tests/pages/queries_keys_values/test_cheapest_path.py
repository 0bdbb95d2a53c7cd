"""The path drawn through the table of edits."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pages.queries_keys_values.lookup_figures import cheapest_path
from viz_core.lessons.queries_keys_values.lookup import edit_table

words = st.text("abc", max_size=6)


@given(query=words, key=words, data=st.data())
def test_a_path_costs_what_the_table_says(query: str, key: str, data: st.DataObject) -> None:
    table = edit_table(query, key)
    end = data.draw(st.integers(0, len(key)))
    path = cheapest_path(table, end)
    assert (path[0], path[-1]) == ((0, 0), (len(query), end))
    cost = 0
    for (i, j), (k, m) in pairwise(path):
        assert (k - i, m - j) in {(0, 1), (1, 0), (1, 1)}
        cost += 0 if (k - i, m - j) == (1, 1) and query[i] == key[j] else 1
    assert cost == table[-1][end]
