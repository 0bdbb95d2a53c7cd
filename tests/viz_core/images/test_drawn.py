"""The drawn pictures: each the same every time, none like another, and what the shipped models take them for."""

from __future__ import annotations

import numpy as np
import pytest

from viz_core.images.synthetic import GARMENTS, SCENES
from viz_core.pretrained import load_classifier

ALL = {**GARMENTS, **SCENES}
LABELS = {"t-shirt": "T-shirt/top", "ankle-boot": "ankle boot"}


@pytest.mark.parametrize("name", ALL)
def test_a_picture_is_the_same_every_time(name: str) -> None:
    first, again = ALL[name](), ALL[name]()
    assert first.size == (256, 256)
    assert first.mode == "RGB"
    assert first.tobytes() == again.tobytes()


def test_no_two_are_alike() -> None:
    pictures = {name: np.asarray(draw(), dtype=float) for name, draw in ALL.items()}
    for name, pixels in pictures.items():
        others = [np.abs(pixels - other).mean() for key, other in pictures.items() if key != name]
        assert min(others) > 5, name


@pytest.mark.parametrize("name", GARMENTS)
def test_a_garment_stands_on_a_light_ground(name: str) -> None:
    pixels = np.asarray(GARMENTS[name]())
    assert (pixels[[0, 0, -1, -1], [0, -1, 0, -1]] > 240).all()


@pytest.mark.parametrize("name", GARMENTS)
def test_the_shipped_model_names_every_garment(name: str) -> None:
    """Needs the shipped model vit-fashion-mnist."""
    found = load_classifier("vit-fashion-mnist", "cpu").classify(GARMENTS[name]())
    assert found.label == LABELS.get(name, name)


def test_the_shipped_model_names_most_scenes() -> None:
    """Needs the shipped model vit-cifar10, which never saw a drawing."""
    model = load_classifier("vit-cifar10", "cpu")
    right = [name for name, draw in SCENES.items() if model.classify(draw()).label == name]
    assert len(right) >= 4, right
