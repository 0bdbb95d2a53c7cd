"""The figures of the vision chapter, by hand."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image

from pages.vision_transformer.figures import filters_image, grid_figure, shuffled_picture, similarity_image

LABELS = {name: name for name in ("row", "column")}


def test_every_patch_of_the_grid_can_be_clicked() -> None:
    figure = grid_figure(Image.new("L", (12, 8)), (2, 3), (1, 2), LABELS)
    points = list(zip(figure.data[0].y.tolist(), figure.data[0].x.tolist(), strict=True))
    assert points == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]


def test_a_shuffled_picture_by_hand() -> None:
    pixels = np.array([[10, 20], [30, 40]], dtype=np.uint8)
    shuffled = shuffled_picture(Image.fromarray(pixels), (1, 1), torch.tensor([2, 0, 3, 1]))
    assert np.asarray(shuffled)[..., 0].tolist() == [[30, 10], [40, 20]]


def test_filters_and_likeness_as_pictures_by_hand() -> None:
    """Red is positive, blue negative, and every tile stands at its own place."""
    filters = torch.zeros(2, 1, 1, 2)
    filters[0, 0, 0] = torch.tensor([2.0, -2.0])
    filters[1, 0, 0] = torch.tensor([-1.0, 0.0])
    sheet = np.asarray(filters_image(filters, columns=2)).astype(int)
    large = 24  # 48 pixels for a filter's longer side of 2
    left, right, second = sheet[2, 2], sheet[2, large + 2], sheet[2, 2 * large + 4 + 2]
    assert left[0] > left[2]
    assert right[2] > right[0]
    assert second[2] > second[0]
    assert sheet[2, 2 * large + 1, 3] == 0, "between two filters there is nothing"
    similarity = torch.eye(4).reshape(2, 2, 2, 2)
    tiles = np.asarray(similarity_image(similarity, side=60)).astype(int)
    cell = 60 // 6
    assert tiles[1, 1, 0] > tiles[1, 1, 2], "the first tile is red at its own place, top left"
    corner = tiles[2 * cell + cell + cell + 1, 2 * cell + cell + cell + 1]
    assert corner[0] > corner[2], "and the last one bottom right"
