"""Maps as picture files."""

from __future__ import annotations

import numpy as np

from ui.blocks.over_picture import signed_image, weights_image


def test_signed_values_are_blue_white_and_red() -> None:
    picture = signed_image(np.array([[-2.0, 0.0, 1.0]], dtype=np.float32), limit=1.0, side=30)
    assert picture.size == (30, 10)
    assert [picture.getpixel((x, 5)) for x in (5, 15, 25)] == [(5, 48, 97), (247, 247, 247), (103, 0, 31)]


def test_weights_run_through_viridis_by_their_root() -> None:
    picture = weights_image(np.array([[0.0, 0.25], [1.0, 1.0]], dtype=np.float32), side=2)
    halfway = weights_image(np.array([[0.5]], dtype=np.float32), side=1, root=False)
    assert picture.getpixel((0, 0)) == (68, 1, 84)
    assert picture.getpixel((1, 0)) == halfway.getpixel((0, 0))
    assert picture.getpixel((0, 1)) == (253, 231, 37)
