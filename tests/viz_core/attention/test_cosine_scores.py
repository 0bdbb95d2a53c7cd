"""Cosine scores against their formula, pair by pair, with their multiplications counted."""

from __future__ import annotations

import math

import pytest
import torch

from viz_core.attention.scores.cosine import COSINE, CosineScale, cosine_scores
from viz_core.attention.scores.function import ScoreSizes, ScoreWidths


def test_scores_by_loops_and_their_cost() -> None:
    queries, keys = torch.randn(2, 3, 5), torch.randn(2, 4, 5)
    made = 0

    def times(x: float, y: float) -> float:
        nonlocal made
        made += 1
        return x * y

    def direction(vector: list[float]) -> list[float]:
        inverse = 1 / math.sqrt(math.fsum(times(x, x) for x in vector))
        return [times(x, inverse) for x in vector]

    expected = []
    for Q, K in zip(queries.tolist(), keys.tolist(), strict=True):
        Q, K = [direction(q) for q in Q], [direction(k) for k in K]
        expected.append([[times(10.0, math.fsum(map(times, q, k))) for k in K] for q in Q])
    scores = COSINE.scores(CosineScale(), queries, keys)
    torch.testing.assert_close(scores, torch.tensor(expected), atol=1e-4, rtol=0)
    assert COSINE.cost(ScoreSizes(2, 3, 4, ScoreWidths(5, 5, 9))) == (1, made)


def test_lengths_do_not_count_and_zeros_score_0() -> None:
    queries, keys = torch.randn(1, 3, 6), torch.randn(1, 4, 6)
    scores = cosine_scores(queries, keys)
    assert scores.abs().max() <= 1 + 1e-6
    torch.testing.assert_close(cosine_scores(7 * queries, 0.01 * keys), scores)
    for dtype in (torch.float32, torch.float16):
        assert not cosine_scores(torch.zeros(1, 2, 6, dtype=dtype), keys.to(dtype)).any()


@pytest.mark.parametrize(("log_scale", "scale"), [(math.log(10), 10), (0, 1), (50, 100)])
def test_the_scale_is_at_most_100(log_scale: float, scale: float) -> None:
    learned = CosineScale()
    with torch.no_grad():
        learned.log_scale.fill_(log_scale)
    assert learned().item() == pytest.approx(scale, rel=1e-5)
