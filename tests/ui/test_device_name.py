"""Devices in the reader's language."""

from __future__ import annotations

import pytest

from ui.text import terms as device_name
from ui.text.words import load_words


@pytest.mark.parametrize(("language", "cores"), [("en", "CPU, 2 cores"), ("pt-BR", "CPU, 2 núcleos")])
def test_cores_are_counted_in_the_readers_language(monkeypatch: pytest.MonkeyPatch, language: str, cores: str) -> None:
    monkeypatch.setattr(device_name, "load_words", lambda name: load_words(name, language))
    assert [device_name.device_name(each) for each in ("CPU, 2 cores", "NVIDIA H200")] == [cores, "NVIDIA H200"]
