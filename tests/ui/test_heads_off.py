"""Heads that are off, named in a row."""

from __future__ import annotations

import pytest

from ui.blocks import heads_off
from ui.text import head_names
from ui.text.words import load_words


@pytest.mark.parametrize(
    ("language", "row"),
    [
        ("en", "head 3 of layer 2 (cross-attention), layer 1 (encoder)"),
        ("pt-BR", "cabeça 3 da camada 2 (atenção cruzada), camada 1 (codificador)"),
        ("zh-TW", "第 2 層第 3 頭（交叉注意力）、第 1 層（編碼器）"),
    ],
)
def test_heads_are_named_in_words_as_the_language_lists_them(
    monkeypatch: pytest.MonkeyPatch, language: str, row: str
) -> None:
    monkeypatch.setattr(heads_off, "current_language", lambda: language)
    monkeypatch.setattr(head_names, "load_words", lambda name: load_words(name, language))
    assert heads_off.name_heads(("cross-2.3", "encoder-1")) == row
    many = [f"decoder-1.{head}" for head in range(1, 9)]
    assert heads_off.name_heads(many).endswith(" … (8)")
    assert head_names.head_title("decoder-1.7") not in heads_off.name_heads(many)
