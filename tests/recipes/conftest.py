"""Fixtures for the tests of training programs."""

from __future__ import annotations

import pytest

from recipes import loop
from recipes.sentence_pairs import Pair
from tests.tiny_translator import CORPUS


@pytest.fixture(scope="session")
def pairs() -> list[Pair]:
    """32 short sentences with a French translation each."""
    return [Pair(*pair) for pair in CORPUS]


@pytest.fixture
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same on every machine, and memory is given back as always."""
    monkeypatch.setenv("ATLAS_DEVICE", "cpu")
    monkeypatch.setattr(loop, "reuse_freed_memory", lambda: None)
