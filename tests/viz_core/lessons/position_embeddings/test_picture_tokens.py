"""Patches of a drawn picture as tokens, and the table of positions of a shipped model."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from tests.tiny_vit import GREY, write_tiny_vit
from viz_core.lessons.position_embeddings.order import (
    picture,
    picture_tokens,
    shipped_position_tables,
)
from viz_core.pretrained import load_classifier


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
    assert shipped_position_tables(tmp_path) == []
    write_model(tmp_path, "a-translator", {"weight": torch.zeros(2)})
    write_model(tmp_path, "b-broken", b"cut short")
    assert shipped_position_tables(tmp_path) == []
    table = torch.randn(1, 50, 8)
    write_model(tmp_path, "vit", {"pos_embedding": table.half()})
    (found,) = shipped_position_tables(tmp_path)
    assert found.card.name == "vit"
    torch.testing.assert_close(found.positions, table[0, 1:].half().float())


def test_the_table_comes_out_of_a_checkpoint_as_training_writes_it(tmp_path: Path) -> None:
    write_tiny_vit(tmp_path, GREY)
    (found,) = shipped_position_tables(tmp_path)
    assert torch.equal(found.positions, load_classifier(GREY, "cpu", tmp_path).model.pos_embedding[0, 1:])
