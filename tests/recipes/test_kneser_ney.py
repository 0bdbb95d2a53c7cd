"""The n-gram model: numbers worked by hand, and what must hold of any."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipes.kneser_ney import KneserNey

START, A, B, C, END = range(5)
TEXTS = [[START, A, B, END], [START, A, C, END]]


def test_bigrams_by_hand() -> None:
    """D_2 = 4 / (4 + 2), D_1 = 3 / (3 + 2); the end follows two words, each of the others one."""
    model = KneserNey(TEXTS, 5, order=2, never=[START])
    assert model.discounts == pytest.approx((3 / 5, 2 / 3))
    assert model.distribution([]) == pytest.approx([0, 0.2, 0.2, 0.2, 0.4])
    assert model.distribution([START, A]) == pytest.approx([0, 2 / 15, 0.3, 0.3, 4 / 15])
    assert model.distribution([END]) == pytest.approx(model.distribution([])), "nothing was seen to follow it"
    assert model.nats(TEXTS[0]) == pytest.approx(-math.log(11 / 15 * 0.3 * 0.6))


def test_what_begins_a_text_is_counted_as_often_as_it_stands_there() -> None:
    """Nothing stands before a start: in how much company (start, A) was seen says nothing of it."""
    model = KneserNey([[START, A, B, END]] * 3 + [[START, B, A, END]], 5, order=3, never=[START])
    assert model.distribution([START])[A] > 2 * model.distribution([START])[B]


@settings(max_examples=30)
@given(st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=8), min_size=1, max_size=12), st.integers(1, 5))
def test_probabilities_are_positive_and_sum_to_one(texts: list[list[int]], order: int) -> None:
    model = KneserNey([[0, *text, 7] for text in texts], 8, order, never=[0])
    for history in ([], [0], [0, *texts[0]], [7, 7, 7], texts[-1]):
        p = model.distribution(history)
        assert p.sum() == pytest.approx(1)
        assert np.all(p[1:] > 0)
        assert p[0] == 0


@pytest.mark.parametrize(("texts", "order", "message"), [(TEXTS, 0, "order: expected 1"), ([[START]], 5, "got none")])
def test_what_cannot_be_counted(texts: list[list[int]], order: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KneserNey(texts, 5, order)
