"""Fixtures for the tests of training programs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from recipes import loop
from recipes.sentence_pairs import Pair
from tests.tiny_models import CORPUS


@pytest.fixture(scope="session")
def pairs() -> list[Pair]:
    """32 short sentences with a French translation each."""
    return [Pair(*pair) for pair in CORPUS]


@pytest.fixture(autouse=True, scope="package")
def on_the_cpu() -> Iterator[None]:
    """The same device on every machine, and how this process manages memory is left alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATLAS_DEVICE", "cpu")
        patch.setattr(loop, "reuse_freed_memory", lambda: None)
        yield


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with 200 sentence pairs, 7 of which fall to validation and 5 to test."""
    folder = tmp_path / "data"
    folder.mkdir()
    lines = [f"I have {n} cats.\tJ'ai {n} chats.\tCC-BY" for n in range(200)]
    (folder / "fra.txt").write_text("\n".join(lines), encoding="utf-8")
    return folder
