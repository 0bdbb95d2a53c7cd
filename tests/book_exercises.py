"""The book's exercises on the pages: where each one is put, and what decides it."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from ui.compute.heads import head_importance
from viz_core.lessons.multi_head import book_toy


@dataclass(frozen=True)
class Exercise:
    """Where an exercise is put, and what decides it.

    Attributes:
        chapter, name: the prediction, `exercise.NAME` among the words of this chapter.
        shown: the section of words with which the page shows the result; "" where the reason says it.
        decide: whether each answer on offer is true, in the order of the page, by what the page computes; never by
            what the words say.
    """

    chapter: str
    name: str
    shown: str = ""
    decide: Callable[[], tuple[bool, ...]] | None = None


def _ones() -> tuple[bool, ...]:
    first = book_toy().weights[0]  # (heads, queries, keys)
    thirds = torch.tensor([1 / 3] * 3 + [0.0] * 3).expand_as(first)
    return (
        float((first.amax(dim=0) - first.amin(dim=0)).max()) > 1e-3,
        float(first.max()) > 0.99,
        torch.allclose(first, thirds),
    )


def _importance() -> tuple[bool, ...]:
    measured = head_importance("transformer-en-fr")
    assert measured is not None
    aligner = next(each.without for each in measured.heads if (each.site, each.head) == ("decoder.2.cross", 2))
    assert aligner is not None
    half = aligner.value < -0.4 * measured.base
    return half, not half and aligner.value <= -1, aligner.value > -1


EXERCISES = {
    "11.1, 1": Exercise("queries-keys-values", "approximate"),
    "11.1, 2": Exercise("queries-keys-values", "covariance"),
    "11.1, 3": Exercise("queries-keys-values", "search"),
    "11.1, 4": Exercise("queries-keys-values", "gates"),
    "11.2, 1": Exercise("attention-pooling", "parzen"),
    "11.2, 2": Exercise("attention-pooling", "descent"),
    "11.2, 3": Exercise("attention-pooling", "sphere"),
    "11.2, 4": Exercise("attention-pooling", "shrink"),
    "11.3, 1": Exercise("scoring-functions", "norms"),
    "11.3, 2": Exercise("scoring-functions", "matrix"),
    "11.3, 3": Exercise("scoring-functions", "cost"),
    "11.4, 1": Exercise("bahdanau", "cell"),
    "11.4, 2": Exercise("bahdanau", "score"),
    "11.5, 1": Exercise("multi-head", "ones", "measured.ones", _ones),
    "11.5, 2": Exercise("transformer", "aligner", "aligns", _importance),
    "11.6, 1": Exercise("position-embeddings", "deep"),
    "11.6, 2": Exercise("position-embeddings", "learnable"),
    "11.6, 3": Exercise("position-embeddings", "offsets"),
    "11.7, 1": Exercise("transformer", "deeper"),
    "11.7, 2": Exercise("transformer", "additive"),
    "11.7, 3": Exercise("transformer", "halves"),
    "11.7, 4": Exercise("architectures", "long"),
    "11.7, 5": Exercise("architectures", "cheaper"),
    "11.8, 1": Exercise("vision-transformer", "side"),
    "11.8, 2": Exercise("vision-transformer", "average"),
    "11.8, 3": Exercise("vision-transformer", "settings"),
    "11.9, 1": Exercise("transformer", "tasks"),
    "11.9, 2": Exercise("transformer", "jobs"),
    "11.9, 3": Exercise("transformer", "readout"),
    "11.9, 4": Exercise("transformer", "one-row"),
}
