"""A translator that spells what it does not know, and begins with the weights of one that does not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from recipes import translation as loop
from recipes.batches import Example, encode_pairs
from recipes.sentence_pairs import Pair
from tests.recipes.small_translator import CONFIG, CPU, memory_left_alone, train
from viz_core.pretrained import ModelCard, TextError, Translator

__all__ = ["memory_left_alone"]


def test_a_vocabulary_of_bytes_and_varied_pairs_from_the_same_loop(
    pairs: list[Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each epoch sees other numbers beside the pairs as they are; what was never seen is spelled."""
    seen: list[list[str]] = []

    def watched(tokenizer: Tokenizer, chosen: Sequence[Pair], most: int) -> list[Example]:
        seen.append([pair.english for pair in chosen])
        return encode_pairs(tokenizer, chosen, most)

    monkeypatch.setattr(loop, "encode_pairs", watched)
    run = train(pairs, tmp_path, replace(CONFIG, epochs=2, byte_fallback=True, vary_pairs=True, vocab_size=200))
    _, _, first, second = seen  # to train on, to validate with, and more in each of two epochs
    assert first != second
    for more in (first, second):
        assert len([text for text in more if re.match(r"I bought \d+ apples\.", text)]) == 24
        assert len([text for text in more if re.match(r"I have \d+ brothers\.", text)]) == 2
        assert len([text for text in more if re.fullmatch(r"[\d, ]+", text)]) == 26  # as many rows as sentences
        assert len(more) == 52
    assert run.tokenizer.encode("Zoé 47").tokens[-3:] == ["▁", "4", "7"]
    assert run.tokenizer.encode("\u732b").tokens == ["▁", "<0xE7>", "<0x8C>", "<0xAB>"]
    assert run.model.encoder.embedding.num_embeddings == run.tokenizer.get_vocab_size() > 400
    translator = Translator(ModelCard("spells", "", "translation", {}, {}, "", "", {}), run.model, run.tokenizer, CPU)
    assert translator.encode("I \u732b")[-4:-1] == run.tokenizer.encode("\u732b").ids[1:]
    with pytest.raises(TextError, match="knows no word or sign"):
        translator.encode("\u732b")  # letters spelled by their bytes are not known by that
