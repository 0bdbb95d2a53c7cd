"""What every scoring function of the register must do, a new one too; those that ship against loops that count."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from viz_core.attention import masked_softmax
from viz_core.attention.scores import FUNCTIONS
from viz_core.attention.scores.function import ScoreCost, ScoreSizes, ScoreWidths, ScoringFunction

Numbers = list[float]


class Counted:
    """Products of plain numbers, counted as they are made."""

    def __init__(self) -> None:
        self.made = 0

    def times(self, x: float, y: float) -> float:
        self.made += 1
        return x * y

    def inner(self, x: Numbers, y: Numbers) -> float:
        return math.fsum(self.times(a, b) for a, b in zip(x, y, strict=True))

    def matrix(self, rows: list[Numbers], x: Numbers) -> Numbers:
        return [self.inner(row, x) for row in rows]


Loop = Callable[[Counted, dict[str, Tensor], list[Numbers], list[Numbers]], list[Numbers]]


def dot(c: Counted, _: dict[str, Tensor], Q: list[Numbers], K: list[Numbers]) -> list[Numbers]:
    return [[c.inner(q, k) for k in K] for q in Q]


def scaled(c: Counted, _: dict[str, Tensor], Q: list[Numbers], K: list[Numbers]) -> list[Numbers]:
    return [[c.times(c.inner(q, k), len(k) ** -0.5) for k in K] for q in Q]


def general(c: Counted, learned: dict[str, Tensor], Q: list[Numbers], K: list[Numbers]) -> list[Numbers]:
    return dot(c, {}, [c.matrix(learned["0"].T.tolist(), q) for q in Q], K)


def additive(c: Counted, learned: dict[str, Tensor], Q: list[Numbers], K: list[Numbers]) -> list[Numbers]:
    W_q, W_k, w_v = (learned[f"{name}.weight"].tolist() for name in ("W_q", "W_k", "w_v"))
    Q, K = [c.matrix(W_q, q) for q in Q], [c.matrix(W_k, k) for k in K]
    return [[c.inner(w_v[0], [math.tanh(a + b) for a, b in zip(q, k, strict=True)]) for k in K] for q in Q]


LOOPS: dict[str, Loop] = {"dot": dot, "scaled": scaled, "general": general, "additive": additive}


SHAPES = [(2, 3, 4, 5, 5), (1, 4, 2, 3, 3), (2, 3, 4, 5, 2), (1, 1, 3, 2, 6)]

every_function = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
every_shape = pytest.mark.parametrize(
    ("function", "shape"),
    [
        pytest.param(function, shape, id=f"{function.name}-{shape}")
        for function in FUNCTIONS
        for shape in SHAPES
        if function.takes(ScoreWidths(*shape[3:], 3))
    ],
)


def vectors(*shape: int) -> tuple[Tensor, Tensor]:
    """Queries and keys: (batch, queries, keys, query_size, key_size)."""
    batch, queries, keys, query_size, key_size = shape
    generator = torch.Generator().manual_seed(queries)
    return (
        torch.randn(batch, queries, query_size, generator=generator),
        torch.randn(batch, keys, key_size, generator=generator),
    )


@every_shape
def test_scores_and_cost_are_those_of_a_loop_that_counts(function, shape):
    queries, keys = vectors(*shape)
    sizes = ScoreSizes(*shape[:3], ScoreWidths(*shape[3:], 3))
    learned = function.make(sizes.widths, 7)
    assert function.cost(sizes).parameters == sum(parameter.numel() for parameter in learned.parameters())
    if function.name not in LOOPS:
        pytest.skip("its formula has a test of its own")
    counted = Counted()
    numbers = {name: value.detach().double() for name, value in learned.named_parameters()}
    expected = [
        LOOPS[function.name](counted, numbers, Q.tolist(), K.tolist()) for Q, K in zip(queries, keys, strict=True)
    ]
    torch.testing.assert_close(
        function.scores(learned, queries, keys).double(),
        torch.tensor(expected, dtype=torch.float64),
        atol=1e-5,
        rtol=1e-5,
    )
    assert function.cost(sizes) == ScoreCost(function.cost(sizes).parameters, counted.made)


@every_shape
def test_each_pair_has_a_score_of_its_own(function, shape):
    """A pair's score depends on no other query, key or batch row, and the weights of a padded row sum to 1."""
    queries, keys = vectors(*shape)
    learned = function.make(ScoreWidths(*shape[3:], 3), 7)
    scores = function.scores(learned, queries, keys)
    assert scores.shape == shape[:3]
    for b, i, j in ((0, 0, 0), (shape[0] - 1, shape[1] - 1, shape[2] - 1)):
        alone = function.scores(learned, queries[b : b + 1, i : i + 1], keys[b : b + 1, j : j + 1])
        torch.testing.assert_close(alone[0, 0, 0], scores[b, i, j], atol=1e-5, rtol=1e-5)
    weights = masked_softmax(scores, torch.full((shape[0],), shape[2] - 1))
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(shape[:2]))
    assert not weights[..., -1].any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
@every_function
def test_half_precision_is_the_same_rounded(function: ScoringFunction[nn.Module], dtype: torch.dtype) -> None:
    queries, keys = vectors(2, 3, 4, 5, 5)
    learned = function.make(ScoreWidths(5, 5, 3), 7)
    expected = function.scores(learned, queries, keys)
    half = function.scores(learned.to(dtype), queries.to(dtype), keys.to(dtype))
    assert half.dtype == dtype
    torch.testing.assert_close(half.float(), expected, atol=0.1, rtol=0.05)
