"""Redraw the pictures of the gallery with each chapter's card: `python -m pages.home.draw`."""

import json
from importlib import import_module

from PIL import Image

from pages.home.gallery import PICTURES
from ui.blocks.linked_sentences import RECORDED, compute
from ui.blocks.small_walk import FILE
from ui.blocks.walk import WalkInputs
from ui.chapter.contents import all_chapters, folder
from ui.text.words import ENGLISH
from ui.widgets.walk import encode_walk
from viz_core.pretrained.samples import sentence


def chapter_picture(name: str) -> Image.Image:
    """A chapter's picture, drawn by `gallery_picture` of its parts."""
    picture: Image.Image = import_module(f"pages.{folder(name)}.parts").gallery_picture()
    return picture


def small_walk() -> bytes:
    """Return the translator's walk through the block of its decoder that aligns words, without words."""
    walk = WalkInputs("translator", sentence("cat")).walk()
    words: dict[str, str] = {}
    return encode_walk(
        walk,
        key="translator",
        kind="translator",
        block=(len(walk.stacks) - 1, None),
        edits=(),
        before=None,
        words=words,
        links={},
        language="en",
        small=1,
    )


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    RECORDED.write_text(json.dumps(compute(sentence("cat"), ENGLISH), ensure_ascii=False) + "\n", encoding="utf-8")
    FILE.write_bytes(small_walk())
    for name in all_chapters()[1:]:
        chapter_picture(name).save(PICTURES / f"{name}.png", optimize=True)
