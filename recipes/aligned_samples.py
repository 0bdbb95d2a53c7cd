"""Sentence pairs with words aligned by hand, the reference for a translator's attention."""

from __future__ import annotations

import re
from dataclasses import dataclass

from viz_core.runtime.assets import ASSETS, reading

_PAIRS = ASSETS / "samples" / "alignments-en-fr.tsv"
_WORDS = {
    "english": re.compile(r"\w+?(?=n't\b)|n't\b|'\w+|\w+|[^\w\s]"),
    "french": re.compile(r"\w+'|\w+|[^\w\s]"),
}
_LINK = re.compile(r"(\d+)([-?])(\d+)")


@dataclass(frozen=True)
class AlignedPair:
    """An English sentence, its translation, and which words stand for each other, as (English, French) from 0."""

    english: str
    french: str
    sure: frozenset[tuple[int, int]]
    possible: frozenset[tuple[int, int]]  # beside the sure ones

    @property
    def english_spans(self) -> list[tuple[int, int]]:
        """Where each English word begins and ends."""
        return [found.span() for found in _WORDS["english"].finditer(self.english)]

    @property
    def french_spans(self) -> list[tuple[int, int]]:
        """Where each French word begins and ends."""
        return [found.span() for found in _WORDS["french"].finditer(self.french)]


def aligned_samples() -> tuple[AlignedPair, ...]:
    """All of them, in the order of the file, which says where they come from and how their words are cut."""
    with reading(_PAIRS):
        lines = _PAIRS.read_text(encoding="utf-8").splitlines()
        return tuple(_read(line) for line in lines if not line.startswith("#"))


def _read(line: str) -> AlignedPair:
    english, french, links = line.split("\t")
    found = [(sign, (int(i), int(j))) for i, sign, j in _LINK.findall(links)]
    sure, possible = (frozenset(pair for sign, pair in found if sign == wanted) for wanted in "-?")
    return AlignedPair(english, french, sure, possible)
