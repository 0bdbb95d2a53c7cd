"""The sample pictures that ship are, pixel for pixel, what their recipe draws."""

from __future__ import annotations

from pathlib import Path

from PIL import Image, ImageChops

from recipes.__main__ import main
from recipes.sample_pictures import DRAWINGS
from viz_core.images.drawn import GARMENTS, SCENES, drawn_picture


def test_the_recipe_draws_what_ships(tmp_path: Path) -> None:
    assert main(["sample-pictures", "--out", str(tmp_path)]) == 0
    assert DRAWINGS.keys() == {*GARMENTS, *SCENES}
    for name in DRAWINGS:
        with Image.open(tmp_path / f"{name}.png") as image:
            assert image.mode == "RGB"
            assert ImageChops.difference(image, drawn_picture(name)).getbbox() is None, name
