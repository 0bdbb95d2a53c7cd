"""The alignment error rate by hand."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recipes.alignment_error import aligned_pairs, alignment_error_rate

links = st.frozensets(st.tuples(st.integers(0, 3), st.integers(0, 3)))


def test_the_error_rate_by_hand() -> None:
    sure, possible = [{(0, 0), (1, 1)}], [{(2, 1)}]
    assert alignment_error_rate([{(0, 0), (1, 1)}], sure, possible) == 0
    # a possible pair is not wrong: |A & S| = 2, |A & P| = 3, |A| = 3, |S| = 2
    assert alignment_error_rate([{(0, 0), (1, 1), (2, 1)}], sure, possible) == 0
    # one sure pair missed, one pair wrong: 1 - (1 + 1) / (2 + 2)
    assert alignment_error_rate([{(0, 0), (3, 3)}], sure, possible) == 0.5
    assert alignment_error_rate([{(3, 3)}], sure, possible) == 1
    # sentences are counted together, not one by one: 1 - (2 + 2 + 0) / (2 + 2 + 1 + 1)
    two = [[{(0, 0), (1, 1)}, {(0, 1)}], [{(0, 0), (1, 1)}, {(0, 0)}], [set(), set()]]
    assert alignment_error_rate(*two) == pytest.approx(1 / 3)


@given(links, links.filter(bool), links)
def test_between_0_and_1_and_0_for_what_people_drew(found: frozenset, sure: frozenset, possible: frozenset) -> None:
    assert 0 <= alignment_error_rate([found], [sure], [possible]) <= 1
    assert alignment_error_rate([sure], [sure], [possible]) == 0
    assert alignment_error_rate([sure | possible], [sure], [possible]) == 0


def test_the_end_of_a_sentence_has_no_partner() -> None:
    written = torch.tensor([[0.0, 0.8, 0.2], [0.9, 0.1, 0.0], [0.0, 0.0, 1.0]])
    assert aligned_pairs(written, 2) == {(1, 0), (0, 1)}
    assert aligned_pairs(written.roll(1, dims=0), 2) == {(1, 1), (0, 2)}


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(ValueError, match="equally many sentences, got 1, 2 and 1"):
        alignment_error_rate([{(0, 0)}], [set(), set()], [set()])
    with pytest.raises(ValueError, match="at least one pair found or sure"):
        alignment_error_rate([set()], [set()], [{(0, 0)}])
