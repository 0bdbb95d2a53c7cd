"""A model that begins with another's weights: rows by token, by its old pieces, or by the unknown token."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from recipes.pair_tokenizer import train_tokenizer
from recipes.sentence_pairs import Pair
from recipes.warm_start import rows_for, warm_start
from tests.tiny_translator import TINY_MODEL
from viz_core.pretrained import Translator, build_translation_model


def test_rows_by_hand() -> None:
    old = train_tokenizer(["ab ab", "a b"], 40)
    new = train_tokenizer(["abc abc abc", "a b c 1"], 40, byte_fallback=True)
    rows = torch.arange(old.get_vocab_size()).float()[:, None] * torch.tensor([1.0, -10.0])
    found = rows_for(rows, old, new)
    assert found.shape == (new.get_vocab_size(), 2)
    pieces = {token: new.token_to_id(token) for token in ("<eos>", "▁a", "▁abc", "<0xE9>", "7")}
    assert None not in pieces.values()
    for token in ("<eos>", "▁a"):
        assert torch.equal(found[pieces[token]], rows[old.token_to_id(token)])
    assert old.token_to_id("▁abc") is None
    split = [piece.id for piece in old.model.tokenize("▁abc")]
    assert [old.id_to_token(i) for i in split] == ["▁ab", "<unk>"]
    assert torch.equal(found[pieces["▁abc"]], rows[split].mean(dim=0))
    for token in ("<0xE9>", "7"):
        assert torch.equal(found[pieces[token]], rows[3])
    with pytest.raises(ValueError, match=r"rows: expected one for each of \d+ tokens, got 2"):
        rows_for(rows[:2], old, new)


def test_with_the_same_vocabulary_it_is_the_same_model(translator: Translator) -> None:
    model = build_translation_model({"vocab_size": translator.tokenizer.get_vocab_size(), **TINY_MODEL})
    warm_start(model, translator.tokenizer, translator)
    trained = dict(translator.model.named_parameters())
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, trained[name]), name
        assert parameter.requires_grad
    assert model.decoder.dense.weight is model.encoder.embedding.weight


def test_with_another_vocabulary_known_tokens_keep_their_rows(translator: Translator, pairs: list[Pair]) -> None:
    other = train_tokenizer([text for pair in pairs for text in pair], 200, byte_fallback=True)
    model = build_translation_model({"vocab_size": other.get_vocab_size(), **TINY_MODEL})
    warm_start(model, other, translator)
    old = translator.model.decoder.dense
    shared = [token for token in other.get_vocab() if translator.tokenizer.token_to_id(token) is not None]
    assert len(shared) > 100
    for token in shared:
        here, there = other.token_to_id(token), translator.tokenizer.token_to_id(token)
        assert torch.equal(model.decoder.dense.weight[here], old.weight[there])
        assert model.decoder.dense.bias[here] == old.bias[there]
    blocks = (each.decoder.blks.block0.ffn.dense1.weight for each in (model, translator.model))
    assert torch.equal(*blocks)


def test_another_size_or_kind_is_refused(translator: Translator) -> None:
    size = translator.tokenizer.get_vocab_size()
    wide = build_translation_model({"vocab_size": size, **TINY_MODEL, "ffn_num_hiddens": 50})
    with pytest.raises(ValueError, match=r"start: \S+ of 'tiny-en-fr' has another shape: expected .*50"):
        warm_start(wide, translator.tokenizer, translator)
    deep = replace(translator, model=build_translation_model({"vocab_size": size, **TINY_MODEL, "num_blks": 3}))
    with pytest.raises(ValueError, match="start: expected a model of the same kind, got 'tiny-en-fr'"):
        warm_start(wide, translator.tokenizer, deep)
