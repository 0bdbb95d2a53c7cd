"""Tokens to try schemes on: sentences with and without the translator, pictures, a shipped table."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from tests.tiny_vit import GREY, write_tiny_vit
from viz_core.pretrained import Translator, load_classifier
from viz_core.pretrained.token_vectors import (
    picture,
    picture_tokens,
    resize_table,
    sentence_tokens,
    shipped_position_table,
)


def test_words_without_a_model_have_a_vector_each() -> None:
    tokens = sentence_tokens("the cat  the\tdog", 10, 16)
    assert tokens.labels == ("the", "cat", "the", "dog")
    assert torch.equal(tokens.X[0], tokens.X[2])
    assert not torch.equal(tokens.X[0], tokens.X[1])
    assert (tokens.height, tokens.width, tokens.total) == (1, 4, 4)


def test_the_translators_tokens_and_scaled_embeddings(translator: Translator) -> None:
    tokens = sentence_tokens("The cat is on the bed.", 100, 16, translator)
    ids = translator.tokenizer.encode("The cat is on the bed.").ids
    assert tokens.labels == translator.readable_tokens(ids)
    expected = translator.model.encoder.embedding.weight[ids] * math.sqrt(tokens.X.shape[1])
    torch.testing.assert_close(tokens.X, expected.detach())


@pytest.mark.parametrize("text", ["", "  \t ", "\x00\x07", "\u200b"])
def test_nothing_to_see_is_no_tokens(text: str, translator: Translator) -> None:
    assert sentence_tokens(text, 10, 16).labels == ()
    assert sentence_tokens(text, 10, 16, translator).labels == ()


def test_long_texts_are_cut_and_say_how_long_they_were() -> None:
    tokens = sentence_tokens("word " * 300, 64, 16)
    assert (len(tokens.labels), tokens.total, tuple(tokens.X.shape)) == (64, 300, (64, 16))
    with pytest.raises(ValueError, match="got 0 and 16"):
        sentence_tokens("a", 0, 16)


def test_one_word_stands_everywhere() -> None:
    tokens = sentence_tokens("a b c", 10, 16).one_word()
    assert tokens.labels == ("a", "a", "a")
    assert torch.equal(tokens.X, tokens.X[:1].expand(3, 16))


def test_patches_are_row_major_and_of_unit_variance() -> None:
    tokens = picture_tokens(3, 5, 256)
    assert tokens.labels[:6] == ("1,1", "1,2", "1,3", "1,4", "1,5", "2,1")
    assert 0.5 < tokens.X.var().item() < 2
    pixels = torch.from_numpy(picture(3, 5))
    projection = torch.randn(64, 256, generator=torch.Generator().manual_seed(0)) / 8
    patch = (pixels[8:16, 16:24].flatten() - pixels.mean()) / pixels.std()
    torch.testing.assert_close(tokens.X[1 * 5 + 2], patch @ projection, atol=1e-4, rtol=1e-4)


def test_pictures_lie_between_black_and_white() -> None:
    for height, width in ((1, 1), (1, 8), (8, 3)):
        pixels = picture(height, width)
        assert pixels.shape == (8 * height, 8 * width)
        assert pixels.min() >= 0
        assert pixels.max() <= 1
    with pytest.raises(ValueError, match="at least 1, got 0 and 3"):
        picture(0, 3)


def write_model(folder: Path, name: str, tensors: dict[str, torch.Tensor] | bytes) -> None:
    (folder / name).mkdir()
    card = {"title": name, "task": "x", "licence": "x"}
    (folder / name / "config.json").write_text(json.dumps(card), encoding="utf-8")
    path = folder / name / "model.safetensors"
    if isinstance(tensors, bytes):
        path.write_bytes(tensors)
    else:
        save_file(tensors, str(path))


def test_the_table_of_a_shipped_picture_model_is_found(tmp_path: Path) -> None:
    assert shipped_position_table(tmp_path) is None
    write_model(tmp_path, "a-translator", {"weight": torch.zeros(2)})
    write_model(tmp_path, "b-broken", b"cut short")
    assert shipped_position_table(tmp_path) is None
    table = torch.randn(1, 50, 8)
    write_model(tmp_path, "vit", {"pos_embedding": table.half()})
    found = shipped_position_table(tmp_path)
    assert found is not None
    torch.testing.assert_close(found, table[0, 1:].half().float())


def test_the_table_comes_out_of_a_checkpoint_as_training_writes_it(tmp_path: Path) -> None:
    write_tiny_vit(tmp_path, GREY)
    found = shipped_position_table(tmp_path)
    assert found is not None
    assert torch.equal(found, load_classifier(GREY, "cpu", tmp_path).model.pos_embedding[0, 1:])


def test_a_table_is_fitted_to_another_grid() -> None:
    table = torch.randn(49, 8)
    assert torch.equal(resize_table(table, 7, 7), table)
    across = torch.arange(7.0).repeat(7)[:, None]  # each cell's column
    wider = resize_table(across, 7, 14).reshape(7, 14)
    torch.testing.assert_close(wider, wider[:1].expand(7, 14), atol=1e-4, rtol=0)
    assert (wider[0].diff() > 0).all()
    with pytest.raises(ValueError, match="square grid, got 48 rows"):
        resize_table(table[:48], 6, 8)
