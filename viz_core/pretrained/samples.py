"""Sample sentences with reference translations."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from viz_core.runtime.assets import ASSETS, reading

_SENTENCES = ASSETS / "samples" / "sentences.json"
_HELD_OUT = ASSETS / "samples" / "held-out.json"
_LONG_TEXT = ASSETS / "samples" / "long-text.txt"
BY_LENGTH = ASSETS / "samples" / "by-length.json"


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


@cache
def by_length() -> dict[str, Any]:
    """The translators on as many test sentences of every length, as `python -m recipes by-length` wrote it.

    "bins" and "balanced" have "sentences", "bleu" of each model and the "difference" attention makes, each as value,
    low and high of a 95% interval; "opening" is the sentence that attention gets right and the plain model loses.
    """
    with reading(BY_LENGTH):
        content: dict[str, Any] = json.loads(BY_LENGTH.read_text(encoding="utf-8"))
        _ = content["bins"], content["balanced"], content["opening"]["english"]
        return content


def opening() -> Sample:
    """Return the test sentence that the GRU with attention aligns best of those that only it translates correctly."""
    found = by_length()["opening"]
    return Sample("opening", found["english"], tuple(found["references"]))


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
