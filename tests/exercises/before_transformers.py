"""The book's exercises of sections 11.1 to 11.6."""

from __future__ import annotations

import torch

from tests.exercises.exercise import Exercise
from viz_core.lessons.queries_keys_values.lookup import BOOK_DATABASE, embed_words
from viz_core.lessons.queries_keys_values.query_gradient import pooled, query_jacobian, weighted_covariance

_NAMES = [key for key, _ in BOOK_DATABASE]


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
    "11.1, 2": Exercise("queries-keys-values", "covariance", "measured.covariance", _covariance),
    "11.2, 3": Exercise("attention-pooling", "sphere", "claim.attention", _sphere),
}
