"""Heads that are off, named in a row."""

from __future__ import annotations

import pytest

from ui.blocks import heads_off


@pytest.mark.parametrize(("language", "row"), [("en", "a, b"), ("pt-BR", "a, b"), ("zh-TW", "a、b")])
def test_heads_are_named_as_the_language_lists_them(monkeypatch: pytest.MonkeyPatch, language: str, row: str) -> None:
    monkeypatch.setattr(heads_off, "current_language", lambda: language)
    assert heads_off.name_heads(("a", "b")) == row
    assert heads_off.name_heads(tuple("abcdefgh")).endswith(" … (8)")
    assert "g" not in heads_off.name_heads(tuple("abcdefgh"))
