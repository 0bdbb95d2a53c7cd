"""The book's Vision Transformer: its settings, its pictures, and one short run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from recipes import book_pictures as pictures
from recipes.picture_sets import Pictures, PictureSplit
from viz_core.models.vit import ViT

CPU = torch.device("cpu")


@pytest.fixture
def split() -> PictureSplit:
    pixels = torch.randint(0, 256, (12, 1, 28, 28), dtype=torch.uint8)
    labels = torch.arange(12) % 10
    return PictureSplit(Pictures(pixels[:8], labels[:8]), Pictures(pixels[8:], labels[8:]))


def test_the_settings_the_book_prints() -> None:
    model = ViT(**pictures.SIZES, num_channels=1)
    assert model.grid == (6, 6)  # 96 x 96 pixels in patches of 16
    assert model.pos_embedding.shape == (1, 37, 512)
    assert [block.mlp.dense1.out_features for block in model.blocks] == [2048, 2048]
    assert (pictures.LEARNING_RATE, pictures.EPOCHS, pictures.BATCH_SIZE) == (0.1, 10, 128)


def test_pictures_are_enlarged_as_pillow_does(split: PictureSplit) -> None:
    enlarged = pictures.enlarge(split.train.pixels)
    for seen, pixels in zip(enlarged, split.train.pixels, strict=True):
        expected = Image.fromarray(pixels[0].numpy()).resize((96, 96), Image.Resampling.BILINEAR)
        assert np.abs(seen[0].numpy() - np.asarray(expected) / 255).max() < 1.01 / 255  # it rounds twice


def test_a_run_leaves_its_files(split: PictureSplit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "load_fashion_mnist", lambda _: split)
    pictures.train(tmp_path, tmp_path / "out", CPU, epochs=1, seeds=(5,), limit=4)
    names = ["card.md", "seed-5.safetensors", "training.json"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    record = json.loads((tmp_path / "out" / "training.json").read_text(encoding="utf-8"))
    assert record["pictures"] == [4, 4]
    (point,) = record["runs"][0]["curve"]
    assert point["validation_accuracy"] in (0.0, 0.25, 0.5, 0.75, 1.0)
    stored = load_file(tmp_path / "out" / "seed-5.safetensors")
    ViT(**pictures.SIZES, num_channels=1).load_state_dict(stored)
    assert float(stored["pos_embedding"].std()) == pytest.approx(1.0, abs=0.05)  # as the book draws them
    card = (tmp_path / "out" / "card.md").read_text(encoding="utf-8")
    assert "trained from scratch on 4 pictures" in card
    assert f"| 5 | 1 | {point['train_loss']} | {point['validation_loss']} | {point['validation_accuracy']} |" in card
    assert "| mlp_num_hiddens | 2048 |" in card


def test_a_limit_below_one(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="limit: expected at least 1 picture, got 0"):
        pictures.train(tmp_path, tmp_path / "out", CPU, limit=0)
