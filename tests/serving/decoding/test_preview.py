"""A preview of any picture that opens."""

from __future__ import annotations

import pytest

from serving.decoding.child import preview
from tests.viz_core.images.test_open_image import BLUE, GOOD, GREEN, RED, WHITE, corners, similar
from viz_core.images.open_image import open_picture


@pytest.mark.parametrize("name", GOOD)
def test_a_preview_of_anything_is_small_and_in_colour(name: str) -> None:
    content, (width, height) = GOOD[name]
    small = preview(open_picture(content), 16)
    assert small.mode == "RGB"
    assert max(small.size) == min(16, max(width, height))
    if name == "rotated photo":
        assert all(map(similar, corners(small), (RED, GREEN, BLUE, WHITE)))


def test_a_preview_of_a_thread_is_thick_enough_to_be_made_smaller() -> None:
    assert preview(open_picture(GOOD["30,000 x 2"][0]), 512).size == (512, 8)
