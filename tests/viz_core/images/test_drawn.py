"""The drawn pictures: none like another, and what the shipped models take them for."""

from __future__ import annotations

import numpy as np
import pytest

from viz_core.images.samples import FOLDER, GARMENTS, SCENES, drawn_picture
from viz_core.pretrained import load_classifier

LABELS = {"t-shirt": "T-shirt/top", "ankle-boot": "ankle boot"}


def test_every_picture_that_ships_has_a_name() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == {*GARMENTS, *SCENES}


def test_no_two_are_alike() -> None:
    pictures = {name: np.asarray(drawn_picture(name), dtype=float) for name in (*GARMENTS, *SCENES)}
    for name, pixels in pictures.items():
        assert pixels.shape == (256, 256, 3)
        others = [np.abs(pixels - other).mean() for key, other in pictures.items() if key != name]
        assert min(others) > 5, name


@pytest.mark.parametrize("name", GARMENTS)
def test_a_garment_stands_on_a_light_ground(name: str) -> None:
    pixels = np.asarray(drawn_picture(name))
    assert (pixels[[0, 0, -1, -1], [0, -1, 0, -1]] > 240).all()


@pytest.mark.parametrize("name", GARMENTS)
def test_the_shipped_model_names_every_garment(name: str) -> None:
    """Needs the shipped model vit-fashion-mnist."""
    found = load_classifier("vit-fashion-mnist", "cpu").classify(drawn_picture(name))
    assert found.label == LABELS.get(name, name)


def test_the_shipped_model_names_most_scenes() -> None:
    """Needs the shipped model vit-cifar10, which never saw a drawing."""
    model = load_classifier("vit-cifar10", "cpu")
    right = [name for name in SCENES if model.classify(drawn_picture(name)).label == name]
    assert len(right) >= 4, right
