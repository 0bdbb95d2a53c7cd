"""How far pictures are from those a model was trained on: by hand, and for the models that ship."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from viz_core.images.samples import GARMENTS, drawn_picture
from viz_core.pretrained import CHECKPOINTS, CheckpointError, load_classifier
from viz_core.pretrained.familiarity import FILE, Familiarity


def test_distances_by_hand() -> None:
    known = Familiarity(torch.tensor([1.0, 0.0]), torch.tensor([[2.0, 0.0], [0.0, 0.5]]))
    # variances 1/4 and 4: sqrt(x^2 / 0.25 + y^2 / 4)
    torch.testing.assert_close(known.distances(torch.tensor([[2.0, 0.0], [2.0, 2.0]])), torch.tensor([4.0, 5.0]).sqrt())


@pytest.mark.parametrize("name", ["vit-cifar10", "vit-fashion-mnist"])
def test_pictures_like_no_other_are_strange(name: str) -> None:
    """One red pixel was "airplane, 91.2%" without a word of caution."""
    model = load_classifier(name, "cpu")
    dot = Image.new("RGB", (32, 32))
    dot.putpixel((9, 17), (255, 0, 0))
    noise = Image.fromarray(np.random.default_rng(1).integers(0, 256, (32, 32, 3), dtype=np.uint8))
    for picture in (dot, noise, Image.new("RGB", (1, 1), (255, 0, 0))):
        found = model.classify(picture).distance
        assert found is not None
        assert found.is_unfamiliar
        assert found.threshold == model.card.training["familiarity"]["threshold"]
    assert min(model.card.training["familiarity"]["strange"].values()) > 0.8


def test_the_garment_that_the_chapter_opens_on_is_not() -> None:
    model = load_classifier("vit-fashion-mnist", "cpu")
    first = model.classify(drawn_picture(GARMENTS[0])).distance
    assert first is not None
    assert not first.is_unfamiliar, "the chapter opens on a picture that the model is said not to know"


def test_a_file_that_is_cut_short_or_of_another_model_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "vit-fashion-mnist"
    shutil.copytree(CHECKPOINTS / "vit-fashion-mnist", folder)
    content = (folder / FILE).read_bytes()
    (folder / FILE).write_bytes(content[:1000])
    with pytest.raises(CheckpointError, match=f"{FILE} cannot be read"):
        load_classifier("vit-fashion-mnist", "cpu", tmp_path)
    save_file({"mean": torch.zeros(3), "whitening": torch.eye(3)}, folder / FILE)
    with pytest.raises(CheckpointError, match="expected a width of 144, got"):
        load_classifier("vit-fashion-mnist", "cpu", tmp_path)
    (folder / FILE).unlink()
    with pytest.raises(CheckpointError, match=f"lacks its file {FILE}"):
        load_classifier("vit-fashion-mnist", "cpu", tmp_path)
