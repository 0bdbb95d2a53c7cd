"""Redraw the pictures of the gallery with each chapter's card: `python -m pages.home.draw`."""

from __future__ import annotations

from importlib import import_module

from PIL import Image

from pages.home.gallery import PICTURES
from pages.home.walk import FILE
from ui.blocks.walk import WalkInputs
from ui.chapter.contents import all_chapters, folder
from ui.text.words import load_words
from ui.widgets.walk_payload import encode_walk


def chapter_picture(name: str) -> Image.Image:
    """A chapter's picture, drawn by the card.py of its folder."""
    picture: Image.Image = import_module(f"pages.{folder(name)}.card").picture()
    return picture


def small_walk() -> bytes:
    """Return the writer's walk through its first block, without words."""
    inputs = WalkInputs("writer", load_words("walk", "en")("start.writer"))
    words: dict[str, str] = {}
    return encode_walk(
        inputs.walk(),
        key="home",
        kind="writer",
        block=(0, 0),
        edits=(),
        before=None,
        words=words,
        links={},
        language="en",
        small=True,
    )


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    FILE.write_bytes(small_walk())
    for name in all_chapters()[1:]:
        chapter_picture(name).save(PICTURES / f"{name}.png", optimize=True)
