"""What a reader draws, as digits and as numbers, and how it is judged."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui.widgets.predictions import Board

CURVE = Board("curve", (0.0, 1.0, 2.0), -1.0, 1.0)
ROW = Board("weights", names=("a", "b", "c"))
STAR = Board("star", (0.0, 4.0), 0.0, 3.0)


def test_levels_are_shares_of_the_picture() -> None:
    assert CURVE.read("009933") == pytest.approx([-1, 1, -1 / 3])
    assert ROW.read("102030") == pytest.approx([1 / 6, 1 / 3, 1 / 2])
    assert STAR.read("9933") == pytest.approx([4, 1])
    assert STAR.levels(np.array([4.0, 1.0])) == [99, 33]
    assert ROW.levels(np.array([0.5, 0.5, 0.0])) == [0.5, 0.5, 0]


@given(st.lists(st.integers(0, 99), min_size=3, max_size=3))
def test_what_is_drawn_comes_back_as_it_was(levels: list[int]) -> None:
    read = CURVE.read("".join(f"{level:02}" for level in levels))
    assert read is not None
    assert CURVE.levels(read) == levels


@pytest.mark.parametrize("text", [None, "", "1234", "1234567", "12345x", "١٢٣٤٥٦", "00000\n", " 12345", "<script>"])
def test_an_address_that_tells_no_drawing_is_none(text: str | None) -> None:
    assert CURVE.read(text) is None


def test_a_row_without_weight_is_no_row() -> None:
    assert ROW.read("000000") is None


def test_distances_by_hand() -> None:
    assert CURVE.distance(np.array([0.0, 0.0, 0.0]), np.array([1.0, -1.0, 0.5])) == pytest.approx(2.5 / 3)
    assert ROW.distance(np.array([1.0, 0.0, 0.0]), np.array([0.25, 0.75, 0.0])) == 0.75
    assert STAR.distance(np.array([0.0, 0.0]), np.array([3.0, 4.0])) == 5


def test_a_guess_is_right_or_a_mistake_or_neither() -> None:
    truth = np.array([0.5, 0.5, 0.0])
    mistakes = {"one": np.array([1.0, 0.0, 0.0]), "other": np.array([0.0, 0.0, 1.0])}
    assert ROW.judge(np.array([0.6, 0.4, 0.0]), truth, mistakes) == "x"
    assert ROW.judge(np.array([0.9, 0.1, 0.0]), truth, mistakes) == "one"
    assert ROW.judge(np.array([0.1, 0.0, 0.9]), truth, mistakes) == "other"
    assert ROW.judge(np.array([0.7, 0.3, 0.0]), truth, mistakes) == " ", "as near to the one as to the other"
    assert ROW.judge(np.array([0.0, 1.0, 0.0]), truth, {}) == " "
