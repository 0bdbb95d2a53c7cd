"""Sentences to start from, with references."""

from __future__ import annotations

import json
from dataclasses import dataclass

from viz_core.runtime.assets import ASSETS

_SENTENCES = ASSETS / "samples" / "sentences.json"


@dataclass(frozen=True)
class Sample:
    """An English sentence and French translations people would give it."""

    id: str
    english: str
    references: tuple[str, ...]


def sentences() -> tuple[Sample, ...]:
    """The book's four sentences first, then longer ones."""
    content = json.loads(_SENTENCES.read_text(encoding="utf-8"))
    return tuple(Sample(s["id"], s["english"], tuple(s["references"])) for s in content["sentences"])


def sentence(sample_id: str) -> str:
    """The English of one of them.

    Raises:
        ValueError: if there is no such sample.
    """
    english = {sample.id: sample.english for sample in sentences()}
    if sample_id not in english:
        raise ValueError(f"sample_id: expected one of {', '.join(english)}, got {sample_id!r}")
    return english[sample_id]
