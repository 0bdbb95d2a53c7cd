"""Pictures to try a classifier on: the sheet that ships, cut as it was put together, and those drawn here."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from PIL import Image

from serving.requests.picture_samples import count_samples, right_statistics, sample_pictures
from viz_core.images.drawn import SCENES, drawn_picture
from viz_core.pretrained import ImageClassifier, load_classifier
from viz_core.pretrained.bootstrap import percentage_right
from viz_core.runtime.assets import ASSETS
from viz_core.trace import intervene, off

SHEET = ASSETS / "samples" / "fashion-mnist-test"


@pytest.fixture(scope="module")
def garments() -> ImageClassifier:
    return load_classifier("vit-fashion-mnist", "cpu")


def test_the_sheet_is_cut_row_by_row(garments: ImageClassifier) -> None:
    sheet = np.array(Image.open(SHEET.with_suffix(".png")))
    about = json.loads(SHEET.with_suffix(".json").read_text(encoding="utf-8"))
    assert (about["licence"], len(about["labels"])) == ("MIT", 1000)
    assert "Zalando SE" in about["copyright"]
    found = sample_pictures(garments, 43, 45)  # the fourth and fifth of the second row
    assert found.kind == "test"
    assert found.labels == tuple(map(int, about["labels"][43:45]))
    mean, std = garments.preparation.mean[0], garments.preparation.std[0]
    expected = (sheet[28:56, 3 * 28 : 4 * 28] / 255 - mean) / std
    np.testing.assert_allclose(found.pixels[0, 0], expected, atol=1e-5)


def test_how_often_it_is_right_is_what_it_says_of_each(garments: ImageClassifier) -> None:
    """Close to the score of the whole split, and another one where heads are off."""
    rows = right_statistics(garments, (), 0, 60)
    assert percentage_right(rows.sum(axis=0)) > 80
    heads = (("encoder.0.self", 0), ("encoder.0.self", 3))
    found = right_statistics(garments, heads, 0, 60)
    pictures = sample_pictures(garments, 0, 60)
    with intervene({"encoder.0.self": off(0, 3)}):
        predicted = garments.predict(pictures.pixels).argmax(dim=-1)
    assert found[:, 0].tolist() == (predicted == torch.tensor(pictures.labels)).double().tolist()
    assert found[:, 1].tolist() == [1.0] * 60
    assert found[:, 0].sum() < rows[:, 0].sum()


def test_where_no_test_picture_may_ship_there_are_drawn_ones() -> None:
    model = load_classifier("vit-cifar10", "cpu")
    assert count_samples(model.card.name, model.labels) == ("drawn", len(SCENES))
    assert count_samples("another", ("dog",)) == ("drawn", 0)
    found = sample_pictures(model, 2, 100)
    assert [model.labels[label] for label in found.labels] == list(SCENES[2:])
    torch.testing.assert_close(found.pixels[:1], model.prepare(drawn_picture(SCENES[2])).pixels)
