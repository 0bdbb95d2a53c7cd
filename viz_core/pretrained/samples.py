"""Sample sentences with reference translations, sample pictures, and what heads are scanned on."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from viz_core.runtime.assets import ASSETS, reading

_SHEET = ASSETS / "samples" / "fashion-mnist-test"


@cache
def shipped_pictures() -> tuple[UInt8[np.ndarray, "n side side"], tuple[int, ...]]:
    """The pictures, row by row of their sheet, and their labels. AssetError if their file is missing or damaged."""
    labels_file, drawn = _SHEET.with_suffix(".json"), _SHEET.with_suffix(".png")
    with reading(labels_file):
        about = json.loads(labels_file.read_text(encoding="utf-8"))
        side, labels = int(about["side"]), tuple(map(int, about["labels"]))
    with reading(drawn):
        sheet = np.array(Image.open(drawn))
        rows = sheet.reshape(-1, side, sheet.shape[1] // side, side).swapaxes(1, 2)
        return rows.reshape(-1, side, side), labels


_DRAWN = ASSETS / "samples" / "drawn.png"
_SIDE, _IN_A_ROW = 256, 7  # pixels of a drawn picture; how many stand beside each other on their sheet

GARMENTS = ("t-shirt", "ankle-boot", "trouser", "dress", "pullover", "bag", "sneaker", "sandal")
"""Garments on a shop's white background: one for several labels of Fashion-MNIST."""

SCENES = ("airplane", "ship", "automobile", "truck", "frog", "cat")
"""Small scenes, each with an object that CIFAR-10 has a label for."""


def drawn_picture(name: str) -> Image.Image:
    """Return one of `GARMENTS` or `SCENES`, 256 x 256 pixels. AssetError if their file is missing or damaged."""
    row, column = divmod((*GARMENTS, *SCENES).index(name), _IN_A_ROW)
    return _drawn_sheet().crop((column * _SIDE, row * _SIDE, (column + 1) * _SIDE, (row + 1) * _SIDE))


@cache
def _drawn_sheet() -> Image.Image:
    with reading(_DRAWN), Image.open(_DRAWN) as sheet:
        return sheet.convert("RGB")


_SENTENCES = ASSETS / "samples" / "sentences.json"
_HELD_OUT = ASSETS / "samples" / "held-out.json"
_LONG_TEXT = ASSETS / "samples" / "long-text.txt"


@dataclass(frozen=True)
class Sample:
    """An English sentence with French reference translations."""

    id: str
    english: str
    references: tuple[str, ...]


BOOK_SENTENCES = 4


@cache
def sentences() -> tuple[Sample, ...]:
    """The book's sentences first, then longer ones."""
    return _read(_SENTENCES)


@cache
def held_out() -> tuple[Sample, ...]:
    """200 sentences of the translators' test split, drawn by their hashes, with all references."""
    return _read(_HELD_OUT)


def long_text() -> str:
    """Return an everyday text of 87 words, long enough to be read through a window."""
    with reading(_LONG_TEXT):
        return _LONG_TEXT.read_text(encoding="utf-8").strip()


def _read(path: Path) -> tuple[Sample, ...]:
    with reading(path):
        content = json.loads(path.read_text(encoding="utf-8"))
        return tuple(Sample(s["id"], s["english"], tuple(s["references"])) for s in content["sentences"])


def sentence(sample_id: str) -> str:
    """Return the English of a sample."""
    return {sample.id: sample.english for sample in sentences()}[sample_id]


def default_words() -> tuple[str, ...]:
    """Return the words of the sentence that chapters open on, and its full stop."""
    return tuple(sentence("cat").replace(".", " .").split())


def default_beginning() -> str:
    """Return how that sentence begins, for a model that writes on."""
    return " ".join(default_words()[:6])


SETS = ("narrow", "broad")
_NARROW = 120
_BROAD = ASSETS / "heads" / "broad.txt"


def scan_inputs(which: str, pictures: bool = False) -> tuple[str, ...]:
    """Return texts, or names of pictures for `scan_picture`.

    Narrow texts are held-out sentences as the shipped models were trained on; broad ones are passages of this project's
    README, licence, guide and code, as they were when they were chosen. Narrow pictures are test pictures of
    Fashion-MNIST; broad ones are drawn garments and scenes. ValueError if `which` is not one of `SETS`.
    """
    if which not in SETS:
        raise ValueError(f"which: expected one of {', '.join(SETS)}, got {which!r}")
    if pictures:
        return tuple(f"test-{i}" for i in range(_NARROW)) if which == "narrow" else (*GARMENTS, *SCENES)
    if which == "narrow":
        return tuple(sample.english for sample in held_out()[:_NARROW])
    with reading(_BROAD):
        return tuple(_BROAD.read_text(encoding="utf-8").splitlines())


def scan_picture(name: str) -> Image.Image:
    """Return the picture of this name."""
    if name.startswith("test-"):
        return Image.fromarray(shipped_pictures()[0][int(name.removeprefix("test-"))])
    return drawn_picture(name)
