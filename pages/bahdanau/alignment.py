"""How well the map agrees with sentences aligned by hand."""

from __future__ import annotations

from pages.bahdanau.models import ATTENTION
from ui.chapter.chapter import Chapter
from ui.compute.models import translator

CHANCE = 0.05  # half the 95% interval of a difference of alignment error rates over 100 resampled sentences


def how_well_aligned(chapter: Chapter) -> None:
    """How well the map agrees with hand-aligned sentences."""
    measured = translator(ATTENTION).card.training.get("alignments")
    if measured:
        (written,), (read,) = measured["written"][0], measured["read"][0]
        values = {"pairs": measured["pairs"]}
        rates = {"written": written, "read": read, "diagonal": measured["diagonal"]}
        values |= {name: f"{rate:.1%}" for name, rate in rates.items()}
        chapter.finding("aligned", abs(written - measured["diagonal"]) <= CHANCE, **values)
