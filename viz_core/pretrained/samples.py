"""Sample sentences with reference translations."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from viz_core.runtime.assets import ASSETS, reading

_SENTENCES = ASSETS / "samples" / "sentences.json"
_HELD_OUT = ASSETS / "samples" / "held-out.json"
_LONG_TEXT = ASSETS / "samples" / "long-text.txt"


@dataclass(frozen=True)
class Sample:
    """An English sentence with French reference translations."""

    id: str
    english: str
    references: tuple[str, ...]


@cache
def sentences() -> tuple[Sample, ...]:
    """The book's four sentences first, then longer ones."""
    return _read(_SENTENCES)


@cache
def held_out() -> tuple[Sample, ...]:
    """200 sentences of the translators' test split, drawn by their hashes, with all references."""
    return _read(_HELD_OUT)


def long_text() -> str:
    """Return an everyday text of 87 words, long enough to be read through a window."""
    with reading(_LONG_TEXT):
        return _LONG_TEXT.read_text(encoding="utf-8").strip()


def _read(path: Path) -> tuple[Sample, ...]:
    with reading(path):
        content = json.loads(path.read_text(encoding="utf-8"))
        return tuple(Sample(s["id"], s["english"], tuple(s["references"])) for s in content["sentences"])


def sentence(sample_id: str) -> str:
    """Return the English of a sample."""
    return {sample.id: sample.english for sample in sentences()}[sample_id]
