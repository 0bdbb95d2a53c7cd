"""Labelled pictures for a classifier: test pictures where the licence allows it, else drawn ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.images.drawn import GARMENTS, SCENES, drawn_picture
from viz_core.images.fashion_mnist import shipped_pictures
from viz_core.pretrained.classifier import ImageClassifier
from viz_core.trace import HeadsOff, intervene, switched_off

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
