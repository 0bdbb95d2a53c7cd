"""What tests of trainings share."""

from __future__ import annotations

import pytest

from recipes import classification


@pytest.fixture
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same on every machine, and memory is given back as always."""
    monkeypatch.setenv("ATLAS_DEVICE", "cpu")
    monkeypatch.setattr(classification, "keep_freed_memory", lambda: None)
