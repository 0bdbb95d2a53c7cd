"""What attention is worth by length, worked by hand."""

from __future__ import annotations

import pytest

from pages.bahdanau.length_bins import bleu_gaps, keeps_rising


def bins(*scores: float) -> list[dict[str, float]]:
    return [{"from": i, "to": i + 1, "bleu": score} for i, score in enumerate(scores)]


def test_gaps_bin_by_bin() -> None:
    assert bleu_gaps(bins(50, 40, 10), bins(43, 30, 10)) == [7, 10, 0]
    with pytest.raises(ValueError, match="expected the same lengths in both"):
        bleu_gaps(bins(50, 40), bins(43))


@pytest.mark.parametrize(("numbers", "rising"), [([1, 2, 3], True), ([7, 10, 8], False), ([1, 1], False), ([], True)])
def test_rising_is_from_each_to_the_next(numbers: list[float], rising: bool) -> None:
    assert keeps_rising(numbers) == rising
