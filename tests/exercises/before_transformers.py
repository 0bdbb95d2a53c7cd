"""The book's exercises of sections 11.1 to 11.6."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from tests.exercises.exercise import Exercise
from viz_core.lessons.queries_keys_values.approximate_weights import edit_kernels, edit_weights
from viz_core.lessons.queries_keys_values.channel_gates import (
    channel_gates,
    channel_scores,
    taken_from_others,
    two_pictures,
)
from viz_core.lessons.queries_keys_values.lookup import BOOK_DATABASE, approximate_lookup, embed_words
from viz_core.lessons.queries_keys_values.query_gradient import pooled, query_jacobian, weighted_covariance
from viz_core.lessons.queries_keys_values.search_engine import click_gradient, click_loss, ranks_while_learning

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
    downhill = -torch.func.grad(lambda moved: click_loss(moved, documents, clicked, temperature))(query)
    straight = documents[clicked] / temperature
    by_hand = -click_gradient(query, documents, clicked, temperature)
    ranks = ranks_while_learning(query, documents, clicked, temperature)
    return (
        torch.allclose(downhill, torch.zeros_like(downhill)) or ranks[-1] == ranks[0],
        torch.allclose(downhill, by_hand),
        torch.allclose(downhill, straight),
    )


def _gates() -> tuple[bool, ...]:
    """Another picture, other places, and one score raised: what does each do to the gates?"""
    first, second = two_pictures()
    scores = channel_scores(first)
    elsewhere = first[:, torch.randperm(first.shape[1])]
    competes = taken_from_others(scores, by_softmax=True)
    assert competes > 0.1
    return (
        torch.allclose(channel_gates(scores), channel_gates(channel_scores(second)), atol=0.01),
        not torch.allclose(channel_gates(scores), channel_gates(channel_scores(elsewhere)), atol=1e-5),
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


def _sphere() -> tuple[bool, ...]:
    generator = torch.Generator().manual_seed(0)
    keys = torch.nn.functional.normalize(torch.randn(7, 3, generator=generator, dtype=torch.float64), dim=1)
    query = torch.randn(3, generator=generator, dtype=torch.float64)
    near = (-(query - keys).square().sum(dim=1) / 2).softmax(dim=0)
    query_alone = (-query.square().sum() / 2).expand(len(keys)).softmax(dim=0)
    return (
        torch.allclose(near, torch.full_like(near, 1 / len(keys))),
        torch.allclose(near, (keys @ query).softmax(dim=0)),
        torch.allclose(near, query_alone),
    )


EXERCISES = {
    "11.1, 1": Exercise("queries-keys-values", "approximate", "measured.approximate", _approximate),
    "11.1, 2": Exercise("queries-keys-values", "covariance", "measured.covariance", _covariance),
    "11.1, 3": Exercise("queries-keys-values", "search", "measured.search", _search),
    "11.1, 4": Exercise("queries-keys-values", "gates", "measured.gates", _gates),
    "11.2, 3": Exercise("attention-pooling", "sphere", "claim.attention", _sphere),
}
