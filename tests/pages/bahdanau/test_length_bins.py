"""What attention is worth by length, worked by hand."""

from __future__ import annotations

import pytest

from pages.bahdanau.length_bins import keeps_rising


@pytest.mark.parametrize(("numbers", "rising"), [([1, 2, 3], True), ([7, 10, 8], False), ([1, 1], False), ([], True)])
def test_rising_is_from_each_to_the_next(numbers: list[float], rising: bool) -> None:
    assert keeps_rising(numbers) == rising
