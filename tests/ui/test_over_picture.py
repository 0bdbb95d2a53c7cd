"""Figures that lay maps over a picture."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from ui.blocks.over_picture import over_picture_figure

LABELS = {name: name for name in ("row", "column", "weight", "layer", "play", "pause")}


def test_maps_lie_over_the_picture_where_its_patches_are() -> None:
    picture = Image.new("L", (12, 8))
    maps = {"one": np.arange(6, dtype=np.float32).reshape(2, 3), "two": np.zeros((2, 3), dtype=np.float32)}
    figure = over_picture_figure(picture, maps, None, LABELS)
    for i, trace in enumerate(figure.data):
        np.testing.assert_array_equal(trace.z, list(maps.values())[i])
        image = figure.layout.images[i]
        assert (image.x, image.y, image.sizex, image.sizey) == (0.5, 0.5, 3, 2)
        assert (list(trace.x), list(trace.y)) == ([1, 2, 3], [1, 2])
    assert figure.data[0].zmax == 5
    assert figure.layout.yaxis.autorange == figure.layout.yaxis2.autorange == "reversed"


def test_the_patch_itself_does_not_drown_the_others() -> None:
    values = np.array([[0.9, 0.01], [0.02, 0.03]], dtype=np.float32)
    figure = over_picture_figure(Image.new("L", (4, 4)), {"a": values}, (0, 0), LABELS)
    assert figure.data[0].zmax == pytest.approx(0.03)
    box = next(s for s in figure.layout.shapes if s.type == "rect")
    assert (box.x0, box.x1, box.y0, box.y1) == (0.5, 1.5, 0.5, 1.5)
    one = over_picture_figure(Image.new("L", (4, 4)), {"a": values[:1, :1]}, (0, 0), LABELS)
    assert one.data[0].zmax == pytest.approx(0.9)
