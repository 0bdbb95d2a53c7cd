"""Redraw the pictures of the gallery with each chapter's card: `python -m pages.home.draw`."""

from __future__ import annotations

from importlib import import_module

from PIL import Image

from pages.home.gallery import PICTURES
from ui.chapter.contents import all_chapters, folder


def chapter_picture(name: str) -> Image.Image:
    """A chapter's picture, drawn by the card.py of its folder."""
    picture: Image.Image = import_module(f"pages.{folder(name)}.card").picture()
    return picture


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    for name in all_chapters()[1:]:
        chapter_picture(name).save(PICTURES / f"{name}.png", optimize=True)
