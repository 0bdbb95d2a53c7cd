"""One token's way through the layers, against the whole matrices and numbers worked out by hand."""

import json
import math
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from PIL import Image

from viz_core.images.drawn import SCENES, drawn_picture
from viz_core.lab.pictures import (
    count_samples,
    heads_measured,
    right_statistics,
    sample_pictures,
    token_in_layer,
    token_over_patches,
)
from viz_core.maps.rollout import attention_rollout
from viz_core.models.vit import ViT
from viz_core.pretrained import Classification, ImageClassifier, load_classifier
from viz_core.pretrained.bleu import percentage_right
from viz_core.pretrained.picture_model import PictureModel
from viz_core.runtime.assets import ASSETS
from viz_core.trace import intervene, off, record

# Two layers of one head over two tokens: the first layer swaps them, the second lets both look at the first.
SWAP, FIRST = torch.tensor([[[0.0, 1.0], [1.0, 0.0]]]), torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])


def run_of(layers: list[torch.Tensor], grid: tuple[int, int] = (1, 1), num_special: int = 1) -> Any:
    """A classification, as far as its maps go."""
    calls = [Mock(weights=Mock(return_value=layer[None])) for layer in layers]
    return Mock(spec=Classification, trace=calls, grid=grid, num_special=num_special)


def model_with(patch_size: tuple[int, int]) -> Any:
    return Mock(spec=PictureModel, patch_size=patch_size)


ANY = model_with((1, 1))


def random_layers(layers: int, heads: int, n: int) -> list[torch.Tensor]:
    return [torch.randn(heads, n, n).softmax(dim=-1) for _ in range(layers)]


def test_by_hand() -> None:
    """A_1 = [[.5, .5], [.5, .5]], A_2 = [[1, 0], [.5, .5]]: the second token is half of each throughout."""
    found = token_in_layer(ANY, run_of([SWAP, FIRST]), 1, 0, "mean", 0.0)
    assert found.raw.tolist() == [1.0, 0.0]
    assert found.rollout.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("fuse", ["mean", "max", "min"])
@pytest.mark.parametrize("discard", [0.0, 0.4])
def test_a_tokens_maps_are_rows_of_the_matrices(fuse: str, discard: float) -> None:
    layers = random_layers(3, 4, 7)
    found = token_in_layer(ANY, run_of(layers), 5, 1, fuse, discard)  # type: ignore[arg-type]
    whole = attention_rollout(layers, fuse, discard)  # type: ignore[arg-type]
    assert torch.equal(found.rollout, whole[5])
    by_hand = {"mean": layers[1].mean(0), "max": layers[1].amax(0), "min": layers[1].amin(0)}[fuse]
    assert torch.equal(found.raw, by_hand[5])
    assert found.row_error == float((whole.sum(dim=-1) - 1).abs().max())


def small_run(grid: tuple[int, int]) -> Any:
    """A picture of 2 x 2 patches, run through a ViT of two layers and said to have a grid."""
    with torch.no_grad(), record() as trace:
        ViT(6, 3, 8, 12, 2, 2, 0.0, 0.0, num_channels=1).eval()(torch.randn(1, 1, 6, 6))
    return Mock(spec=Classification, trace=trace, grid=grid, num_special=1)


@pytest.mark.parametrize("token", [0, 3])
def test_maps_of_a_token_are_rows_of_the_weights(token: int) -> None:
    run = small_run((2, 2))
    maps = token_over_patches(ANY, run, token)
    assert maps.shape == (2, 2, 2, 2)
    for layer, call in enumerate(run.trace):
        assert torch.equal(maps[layer].flatten(start_dim=1), call.weights()[0, :, token, 1:])


def test_heads_that_look_evenly_and_at_themselves() -> None:
    """Over 2 x 2 patches of 3 x 3 pixels: a head that looks at itself is 0 away and certain, log2(4) bits if even."""
    itself, even = torch.eye(4), torch.full((4, 4), 0.25)
    measured = heads_measured(model_with((3, 3)), run_of([torch.stack([itself, even])], (2, 2), 0))
    assert measured["entropy"][0].tolist() == pytest.approx([0.0, 2.0])
    assert measured["distance"][0].tolist() == pytest.approx([0.0, (3 + 3 + 3 * math.sqrt(2)) / 4])


def test_what_is_refused() -> None:
    layers = random_layers(2, 2, 5)
    with pytest.raises(IndexError):
        token_in_layer(ANY, run_of(layers), 5, 0, "mean", 0.0)
    with pytest.raises(IndexError):
        token_in_layer(ANY, run_of(layers), 0, 2, "mean", 0.0)
    with pytest.raises(ValueError, match="discard_ratio"):
        token_in_layer(ANY, run_of(layers), 0, 0, "mean", 1.0)
    with pytest.raises(ValueError, match="special tokens"):
        heads_measured(model_with((1, 1)), run_of(layers, (3, 3)))
    with pytest.raises(ValueError, match="1 special tokens and 3 x 2 patches, a side of 7, got maps of 5 x 5"):
        token_over_patches(ANY, small_run((3, 2)), 0)


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
