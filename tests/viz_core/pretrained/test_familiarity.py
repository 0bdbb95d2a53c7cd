"""How far pictures are from those a model was trained on: by hand, against numpy, and for the models that ship."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from viz_core.images.drawn import GARMENTS, drawn_picture
from viz_core.pretrained import CHECKPOINTS, CheckpointError, load_classifier
from viz_core.pretrained.familiarity import FILE, Familiarity


def test_distances_by_hand() -> None:
    known = Familiarity.fit(torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -2.0]]), ridge=0)
    # mean 0, variances 1/2 and 2: sqrt(x^2 / 0.5 + y^2 / 2)
    torch.testing.assert_close(
        known.distances(torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 2.0]])), torch.tensor([2.0, 2.0, 4.0]).sqrt()
    )


def test_distances_are_mahalanobis_and_do_not_depend_on_the_axes() -> None:
    features = torch.randn(200, 5) @ torch.randn(5, 5) + 3
    known = Familiarity.fit(features, ridge=0)
    x = features.double().numpy()
    inverse = np.linalg.inv(np.cov(x.T, bias=True))
    away = x - x.mean(axis=0)
    expected = np.sqrt(np.einsum("ni,ij,nj->n", away, inverse, away))
    np.testing.assert_allclose(known.distances(features), expected, rtol=1e-3)
    turned = torch.randn(5, 5) + 2 * torch.eye(5)
    again = Familiarity.fit(features @ turned, ridge=0).distances(features @ turned)
    torch.testing.assert_close(again, known.distances(features), rtol=1e-2, atol=1e-2)


def test_few_pictures_or_none_alike() -> None:
    with pytest.raises(ValueError, match="at least 2 pictures, got 1"):
        Familiarity.fit(torch.ones(1, 3))
    same = Familiarity.fit(torch.ones(4, 3))
    assert same.distances(torch.ones(1, 3)).item() == 0
    assert same.distances(torch.zeros(1, 3)).item() > 1e6  # nothing else was ever seen


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
        assert found.strange
        assert found.threshold == model.card.training["familiarity"]["threshold"]
    assert min(model.card.training["familiarity"]["strange"].values()) > 0.8


def test_the_garment_that_the_chapter_opens_on_is_not() -> None:
    model = load_classifier("vit-fashion-mnist", "cpu")
    first = model.classify(drawn_picture(GARMENTS[0])).distance
    assert first is not None
    assert not first.strange, "the chapter opens on a picture that the model is said not to know"


def test_a_file_that_is_cut_short_or_of_another_model_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "vit-fashion-mnist"
    shutil.copytree(CHECKPOINTS / "vit-fashion-mnist", folder)
    content = (folder / FILE).read_bytes()
    (folder / FILE).write_bytes(content[:1000])
    with pytest.raises(CheckpointError, match=f"{FILE} cannot be read"):
        load_classifier("vit-fashion-mnist", "cpu", tmp_path)
    Familiarity(torch.zeros(3), torch.eye(3)).save(folder)
    with pytest.raises(CheckpointError, match="expected a width of 144, got"):
        load_classifier("vit-fashion-mnist", "cpu", tmp_path)
    (folder / FILE).unlink()
    with pytest.raises(CheckpointError, match=f"lacks its file {FILE}"):
        load_classifier("vit-fashion-mnist", "cpu", tmp_path)
