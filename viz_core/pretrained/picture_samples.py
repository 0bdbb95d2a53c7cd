"""Labelled pictures for a classifier: test pictures where the licence allows it, else drawn ones."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor

from viz_core.images.drawn import GARMENTS, SCENES, drawn_picture
from viz_core.pretrained.classifier import ImageClassifier
from viz_core.runtime.assets import ASSETS, reading
from viz_core.trace import HeadsOff, intervene, switched_off

_SHEET = ASSETS / "samples" / "fashion-mnist-test"
_MODEL = "vit-fashion-mnist"


@dataclass(frozen=True, eq=False)
class PictureSamples:
    """Pictures as a model takes them, and the number of each one's label.

    Attributes:
        kind: "test" where they are of the test split, "drawn" where this project drew them.
    """

    kind: Literal["test", "drawn"]
    pixels: Float[Tensor, "n channels height width"]
    labels: tuple[int, ...]


def count_samples(name: str, labels: tuple[str, ...]) -> tuple[Literal["test", "drawn"], int]:
    """Return the kind and number of sample pictures of a shipped model; 0 where none has one of its labels."""
    return ("test", len(shipped_pictures()[1])) if name == _MODEL else ("drawn", len(_drawn(labels)))


def sample_pictures(classifier: ImageClassifier, start: int, stop: int) -> PictureSamples:
    """Return a range of the sample pictures of this model.

    1,000 pictures of Fashion-MNIST's test split ship, under its licence (MIT). CIFAR-10's may not: there are the
    drawn ones that have one of its labels.
    """
    kind, _ = count_samples(classifier.card.name, classifier.labels)
    if kind == "test":
        pictures, numbers = shipped_pictures()
        return PictureSamples(kind, classifier.preparation.normalise(pictures[start:stop]), numbers[start:stop])
    drawn = _drawn(classifier.labels)[start:stop]
    pixels = [classifier.prepare(drawn_picture(name)).pixels for name in drawn]
    return PictureSamples(kind, torch.cat(pixels), tuple(classifier.labels.index(name) for name in drawn))


def right_statistics(
    classifier: ImageClassifier, off: HeadsOff, start: int, stop: int
) -> Float[np.ndarray, "pictures 2"]:
    """Return, for `percentage_right`, whether each picture is classified correctly with heads off (1 or 0), and 1."""
    pictures = sample_pictures(classifier, start, stop)
    with intervene(switched_off(off)):
        chances = classifier.predict(pictures.pixels)
    right = (chances.argmax(dim=-1) == torch.tensor(pictures.labels)).double()
    return torch.stack([right, torch.ones_like(right)], dim=1).numpy()


def _drawn(labels: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in (*GARMENTS, *SCENES) if name in labels)


@cache
def shipped_pictures() -> tuple[UInt8[Tensor, "n 1 side side"], tuple[int, ...]]:
    """The pictures of Fashion-MNIST's test split that ship, row by row of their sheet, and their labels.

    Raises:
        AssetError: if their file is missing or damaged.
    """
    labels_file, drawn = _SHEET.with_suffix(".json"), _SHEET.with_suffix(".png")
    with reading(labels_file):
        about = json.loads(labels_file.read_text(encoding="utf-8"))
        side, labels = int(about["side"]), tuple(map(int, about["labels"]))
    with reading(drawn):
        sheet = torch.from_numpy(np.array(Image.open(drawn)))
        pictures = sheet.unfold(0, side, side).unfold(1, side, side).flatten(0, 1)
        return pictures[:, None].contiguous(), labels
