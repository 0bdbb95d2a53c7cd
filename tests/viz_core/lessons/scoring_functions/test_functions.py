"""The register of scoring functions: each entry against a loop that counts, and a fifth that is one entry."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from viz_core.lessons.scoring_functions.functions import (
    BY_NAME,
    FUNCTIONS,
    Cost,
    ScoringFunction,
    Sizes,
    Widths,
    make_additive,
)
from viz_core.lessons.scoring_functions.score_contest import contest
from viz_core.lessons.scoring_functions.score_scenes import Scene, turned, widths

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


def scene(batch: int, queries: int, keys: int, query_size: int, key_size: int) -> Scene:
    generator = torch.Generator().manual_seed(queries)
    return Scene(
        torch.randn(batch, queries, query_size, generator=generator),
        torch.randn(batch, keys, key_size, generator=generator),
        paired=False,
    )


def test_the_register_has_every_function_once() -> None:
    assert [function.name for function in FUNCTIONS] == list(BY_NAME) == list(LOOPS)


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        pytest.param(function, shape, id=f"{function.name}-{shape}")
        for function in FUNCTIONS
        for shape in [(2, 3, 4, 5, 5), (1, 4, 2, 3, 3), (2, 3, 4, 5, 2), (1, 1, 3, 2, 6)]
        if function.takes(Widths(*shape[3:], 3))
    ],
)
def test_scores_and_cost_are_those_of_a_loop_that_counts(
    function: ScoringFunction[nn.Module], shape: tuple[int, int, int, int, int]
) -> None:
    given = scene(*shape)
    sizes = given.sizes(3)
    assert sizes == Sizes(*shape[:3], Widths(*shape[3:], 3))
    learned = function.fresh(sizes.widths, 7)
    counted = Counted()
    numbers = {name: value.detach().double() for name, value in learned.named_parameters()}
    expected = [
        LOOPS[function.name](counted, numbers, Q.tolist(), K.tolist())
        for Q, K in zip(given.queries, given.keys, strict=True)
    ]
    torch.testing.assert_close(
        function.scores(learned, given.queries, given.keys).double(),
        torch.tensor(expected, dtype=torch.float64),
        atol=1e-5,
        rtol=1e-5,
    )
    parameters = sum(parameter.numel() for parameter in learned.parameters())
    assert function.cost(sizes) == Cost(parameters, counted.made)


@pytest.mark.usefixtures("shapes_unchecked")
def test_only_dot_products_ask_for_one_width() -> None:
    assert [f.name for f in FUNCTIONS if not f.takes(Widths(20, 2, 8))] == ["dot", "scaled"]
    assert all(f.takes(Widths(8, 8, 3)) for f in FUNCTIONS)
    given = widths()
    for name in ("dot", "scaled"):
        function = BY_NAME[name]
        with pytest.raises(ValueError, match="expected queries and keys of one width, got 20 and 2"):
            function.scores(function.fresh(given.sizes(8).widths, 0), given.queries, given.keys)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_what_is_learned_follows_its_seed_and_not_torchs(function: ScoringFunction[nn.Module]) -> None:
    first, again, other = (list(function.fresh(Widths(4, 3, 2), seed).parameters()) for seed in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, other, strict=True))


def test_the_additive_layer_needs_a_hidden_unit() -> None:
    with pytest.raises(ValueError, match="num_hiddens: expected at least 1, got 0"):
        make_additive(Widths(4, 3, 0))


def _two_projections(given: Widths, seed: int) -> nn.ParameterList:
    generator = torch.Generator().manual_seed(seed)
    return nn.ParameterList([torch.randn(given.num_hiddens, d, generator=generator) for d in given[:2]])


# (W_q q)^T (W_k k): the dot product of two projections, as in a head of a Transformer.
PROJECTED: ScoringFunction[nn.ParameterList] = ScoringFunction(
    "projected",
    r"(W_q q)^\top W_k k",
    lambda W, queries, keys: queries @ W[0].T @ (keys @ W[1].T).mT,
    lambda s: Cost(
        s.widths.num_hiddens * (s.widths.query_size + s.widths.key_size),
        s.batch * s.widths.num_hiddens * (s.queries * (s.widths.query_size + s.keys) + s.keys * s.widths.key_size),
    ),
    _two_projections,
)


def test_a_fifth_function_is_one_entry() -> None:
    """6 queries of width 20, 6 keys of width 2, 3 hidden units."""
    given = widths()
    entries = contest(given, 3, 0, seed=5, functions=(*FUNCTIONS, PROJECTED))
    assert list(entries) == [*BY_NAME, "projected"]
    fifth = entries["projected"]
    W_q, W_k = (W.detach() for W in _two_projections(Widths(20, 2, 3), 5))
    assert fifth.scores is not None
    for i, q in enumerate(given.queries[0]):
        for j, k in enumerate(given.keys[0]):
            assert float(fifth.scores[0, i, j]) == pytest.approx(float((W_q @ q) @ (W_k @ k)), rel=1e-4, abs=1e-4)
    assert (fifth.parameters, fifth.multiplications) == (3 * 22, 3 * (120 + 12 + 36))
    before = contest(given, 3, 0, seed=5)
    assert all(entries[name].multiplications == entry.multiplications for name, entry in before.items())


def test_a_fifth_function_learns_like_the_others_and_may_ask_for_one_width() -> None:
    entries = contest(turned(), 8, 300, functions=(*FUNCTIONS, PROJECTED))
    assert entries["projected"].found == 1.0
    narrow = contest(widths(), 8, 0, functions=[replace(PROJECTED, one_width=True)])
    assert narrow["projected"].scores is None
    assert math.isnan(narrow["projected"].found)
