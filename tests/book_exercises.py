"""The book's exercises on the pages: where each one is put, and the experiment that decides it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from statistics import mean

import pytest
import torch

from pages.architectures import parts as long_texts
from pages.bahdanau.parts import variants
from ui.compute.heads import head_importance
from viz_core.lessons.architectures.cheaper import held, savings
from viz_core.lessons.attention_pooling.curve_fit import descend_width, errors_by_rate, noisy_points, sphere_errors
from viz_core.lessons.attention_pooling.in_the_plane import agreement, labelled_points
from viz_core.lessons.multi_head.book_examples import book_toy
from viz_core.lessons.queries_keys_values.exercises import (
    channel_gates,
    channel_scores,
    click_loss,
    edit_kernels,
    edit_weights,
    pooled,
    query_jacobian,
    ranks_while_learning,
    taken_from_others,
    two_pictures,
    weighted_covariance,
)
from viz_core.lessons.queries_keys_values.lookup import BOOK_DATABASE, approximate_lookup, embed_words
from viz_core.lessons.scoring_functions.exercises import KEY_SIZE, contributing_components, count_costs, distance_errors


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


_NAMES = [key for key, _ in BOOK_DATABASE]


def _approximate() -> tuple[bool, ...]:
    """Which kernel lets the same keys answer as the lookup, all alike, for every query and reach."""
    same = dict.fromkeys(("cold", "boxcar", "wide"), True)
    for query, most in product([*_NAMES, "Lipten", "Hu Li"], range(1, 6)):
        found = {each.place for each in approximate_lookup(query, _NAMES, most)}
        for name, kernel in edit_kernels(most).items():
            weights = edit_weights(query, _NAMES, kernel)
            alike = [pytest.approx(1 / len(found)) if place in found else 0 for place in range(len(_NAMES))]
            same[name] &= weights.tolist() == alike
    return same["cold"], same["boxcar"], same["wide"]


def _search() -> tuple[bool, ...]:
    """Where a step down the loss of a click goes, by automatic differentiation."""
    documents = embed_words(_NAMES)
    query, clicked, temperature = documents[2], 4, 0.2
    downhill = -torch.func.grad(lambda q: click_loss(q, documents, clicked, temperature))(query)
    straight = documents[clicked] / temperature
    weights = torch.softmax(documents @ query / temperature, dim=0)
    by_hand = (documents[clicked] - weights @ documents) / temperature
    ranks = ranks_while_learning(query, documents, clicked, temperature)
    return (
        torch.allclose(downhill, torch.zeros_like(downhill)) or ranks[-1] == ranks[0],
        torch.allclose(downhill, by_hand),
        torch.allclose(downhill, straight),
    )


def _gates() -> tuple[bool, ...]:
    """Another picture, and one score raised: what does each do to the gates?"""
    first, second = two_pictures()
    scores = channel_scores(first)
    competes = taken_from_others(scores, by_softmax=True)
    assert competes > 0.01
    return (
        torch.allclose(channel_gates(scores), channel_gates(channel_scores(second)), atol=0.01),
        taken_from_others(scores, by_softmax=False) == 0,
    )


def _covariance() -> tuple[bool, ...]:
    keys = embed_words(_NAMES)
    query = keys[2]
    jacobian = query_jacobian(query, keys)
    mean = pooled(query, keys).expand_as(jacobian)
    return (
        torch.allclose(jacobian, mean),
        torch.allclose(jacobian, weighted_covariance(query, keys)),
        torch.allclose(jacobian, torch.zeros_like(jacobian)),
    )


def _parzen() -> tuple[bool, ...]:
    """Where the two classifiers differ, with unequal counts, and beyond all points."""
    points, labels = labelled_points()
    counts = torch.bincount(labels.clamp(max=1))
    assert counts[0] != counts[1]
    found = agreement(points, labels, 0.5)
    assert found.unlike_by_count > 0  # counts matter where they are left out
    assert found.off < 1e-9
    far = agreement(points + 4, labels, 0.5)  # most of the plane is far from them
    return found.unlike > 0, far.unlike > 0, found.unlike + far.unlike == 0


def _descent() -> tuple[bool, ...]:
    """Both widths, on three draws of the book's points."""
    found = []
    for seed in range(3):
        points = noisy_points(40, 1.0, seed)
        found.append([descend_width(*points, left_out=left_out).width for left_out in (False, True)])
    with_own, without_own = zip(*found, strict=True)
    narrow, reaches = 0.03, 5 / 40  # the mean gap between 40 points
    return (
        any(abs(a / b - 1) < 0.1 for a, b in found),
        max(with_own) < narrow and min(without_own) > reaches,
        max(with_own) < narrow and max(without_own) < narrow,
    )


def _sphere() -> tuple[bool, ...]:
    product, even = sphere_errors()
    return (
        even < 1e-9,
        product < 1e-9,
        even < 1e-9,
    )  # the query's length is the same for all, so it would leave them even


def _shrink() -> tuple[bool, ...]:
    errors = {power: rate.error for power, rate in errors_by_rate((1.0, 0.2, 0.0), 20, 2000, draws=4).items()}
    return tuple(error == min(errors.values()) for error in errors.values())


def _epochs(other: str) -> tuple[bool, bool, bool]:
    """Whether this variant learned in fewer epochs than the book's, in as many, in more; by every seed."""
    pairs = list(zip(*(variants()[name].epochs_until(1.0) for name in (other, "printed")), strict=True))
    assert len(pairs) == 3
    return all(a < b for a, b in pairs), all(a == b for a, b in pairs), all(a > b for a, b in pairs)


def _cell() -> tuple[bool, ...]:
    fewer, same, more = _epochs("lstm")
    a, b = (mean(variants()[name].epochs_until(1.0)) for name in ("lstm", "printed"))
    return fewer, same, more and 1.3 < a / b < 1.7


def _score() -> tuple[bool, ...]:
    fewer, same, more = _epochs("dot-product")
    saved = variants()["printed"].parameters - variants()["dot-product"].parameters
    return fewer, same and saved == 2 * 256 * 256 + 256, more


def _norms() -> tuple[bool, ...]:
    """Keys' norms are enough where they alone give the weights, and the query's are needed where they do not."""
    error = distance_errors()
    enough = error["keys"] < 1e-9
    return error["both"] < 1e-9 and not enough, enough, error["neither"] < 1e-9


def _matrix() -> tuple[bool, ...]:
    return tuple(contributing_components(way) == KEY_SIZE for way in ("one", "between", "padded"))


def _cost() -> tuple[bool, ...]:
    once, longer = count_costs(32, 32, 16, 24), count_costs(64, 64, 16, 24)
    assert once.multiplications == 32 * 32 * (16 + 24)
    growth = [b / a for a, b in zip(once, longer, strict=True)]
    return growth == [2, 2, 2], growth == [4, 4, 4], growth == [4, 2, 4]


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


def _long() -> tuple[bool, ...]:
    short, long = (held(n, 512, long_texts.HEADS) for n in (long_texts.SHORT, long_texts.LONG))
    return tuple(long[name] == 10_000 * short[name] for name in ("parameters", "keys", "weights", "path"))


def _cheaper() -> tuple[bool, ...]:
    found = savings(long_texts.TEXT, long_texts.HEAD_WIDTH, long_texts.TILE)
    same = [found[name].change < 1e-12 for name in ("window", "tiles", "linear")]
    assert all(found[name].held < found["whole"].held for name in ("window", "tiles", "linear"))
    return (*same, not any(same))


EXERCISES = {
    "11.1, 1": Exercise("queries-keys-values", "approximate", "measured.approximate", _approximate),
    "11.1, 2": Exercise("queries-keys-values", "covariance", "measured.covariance", _covariance),
    "11.1, 3": Exercise("queries-keys-values", "search", "measured.search", _search),
    "11.1, 4": Exercise("queries-keys-values", "gates", "measured.gates", _gates),
    "11.2, 1": Exercise("attention-pooling", "parzen", "measured.parzen", _parzen),
    "11.2, 2": Exercise("attention-pooling", "descent", "measured.descent", _descent),
    "11.2, 3": Exercise("attention-pooling", "sphere", "measured.sphere", _sphere),
    "11.2, 4": Exercise("attention-pooling", "shrink", "measured.shrink", _shrink),
    "11.3, 1": Exercise("scoring-functions", "norms", "measured.norms", _norms),
    "11.3, 2": Exercise("scoring-functions", "matrix", "measured.matrix", _matrix),
    "11.3, 3": Exercise("scoring-functions", "cost", "measured.cost", _cost),
    "11.4, 1": Exercise("bahdanau", "cell", "alt.measured-lstm", _cell),
    "11.4, 2": Exercise("bahdanau", "score", "alt.measured-dot-product", _score),
    "11.5, 1": Exercise("multi-head", "ones", "measured.ones", _ones),
    "11.5, 2": Exercise("transformer", "aligner", "aligns", _importance),
    "11.6, 1": Exercise("position-embeddings", "deep"),
    "11.6, 2": Exercise("position-embeddings", "learnable"),
    "11.6, 3": Exercise("position-embeddings", "offsets"),
    "11.7, 1": Exercise("transformer", "deeper"),
    "11.7, 2": Exercise("transformer", "additive"),
    "11.7, 3": Exercise("model-lab", "halves"),
    "11.7, 4": Exercise("architectures", "long", "measured.long", _long),
    "11.7, 5": Exercise("architectures", "cheaper", "measured.cheaper", _cheaper),
    "11.8, 1": Exercise("vision-transformer", "side"),
    "11.8, 2": Exercise("vision-transformer", "average"),
    "11.8, 3": Exercise("vision-transformer", "settings"),
    "11.9, 1": Exercise("model-lab", "tasks"),
    "11.9, 2": Exercise("model-lab", "jobs"),
    "11.9, 3": Exercise("model-lab", "readout"),
    "11.9, 4": Exercise("model-lab", "one-row"),
}
