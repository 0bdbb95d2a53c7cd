"""Every scoring function in one register: what it learns, how it scores, what it costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.attention.additive import AdditiveAttention
from viz_core.attention.scoring import dot_scores, general_scores, scaled_dot_scores

Queries = Float[Tensor, "batch queries query_size"]
Keys = Float[Tensor, "batch keys key_size"]
Scores = Float[Tensor, "batch queries keys"]
Learned = TypeVar("Learned", bound=nn.Module)


class Widths(NamedTuple):
    """Widths of queries, of keys, and of what they may meet in."""

    query_size: int
    key_size: int
    num_hiddens: int


class Sizes(NamedTuple):
    """How many queries are scored against how many keys in each of `batch` rows, and how wide they are."""

    batch: int
    queries: int
    keys: int
    widths: Widths


class Cost(NamedTuple):
    """Numbers learned, and multiplications for all pairs, projections included."""

    parameters: int
    multiplications: int


def _nothing(_widths: Widths, _seed: int) -> nn.Module:
    return nn.ParameterList()


@dataclass(frozen=True)
class ScoringFunction(Generic[Learned]):
    """a(q, k): how well a query and a key fit, as one number for every pair.

    Args:
        name: one word, as in the register.
        formula: a(q, k) in LaTeX.
        scores: of every query and key, by what it has learned.
        cost: by size.
        fresh: what it learns, for these widths, its numbers drawn from a generator of their own.
        one_width: whether queries and keys must be equally wide.
    """

    name: str
    formula: str
    scores: Callable[[Learned, Queries, Keys], Scores]
    cost: Callable[[Sizes], Cost]
    fresh: Callable[[Widths, int], Learned] = field(default=_nothing)  # type: ignore[assignment]
    one_width: bool = False

    def takes(self, widths: Widths) -> bool:
        """Whether it is defined for queries and keys of these widths."""
        return not self.one_width or widths.query_size == widths.key_size


def make_matrix(widths: Widths, seed: int = 0) -> nn.ParameterList:
    """A random M for `general_scores`, small enough that scores start near 1."""
    shape = widths.query_size, widths.key_size
    M = torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * (shape[0] * shape[1]) ** -0.5
    return nn.ParameterList([M])


def make_additive(widths: Widths, seed: int = 0) -> AdditiveAttention:
    """Additive attention of these widths, its weights drawn from a generator of their own.

    Raises:
        ValueError: if num_hiddens is < 1.
    """
    if widths.num_hiddens < 1:
        raise ValueError(f"num_hiddens: expected at least 1, got {widths.num_hiddens}")
    layer = AdditiveAttention(*widths).eval()
    generator = torch.Generator().manual_seed(seed)  # not torch's own: visitors share that one
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(0, parameter.shape[-1] ** -0.5, generator=generator)
    return layer


def _additive_scores(layer: AdditiveAttention, queries: Queries, keys: Keys) -> Scores:
    return layer.score(queries, layer.W_k(keys))


def _dot_cost(sizes: Sizes) -> Cost:
    return Cost(0, sizes.batch * sizes.queries * sizes.keys * sizes.widths.key_size)


def _scaled_cost(sizes: Sizes) -> Cost:
    return Cost(0, sizes.batch * sizes.queries * sizes.keys * (sizes.widths.key_size + 1))


def _general_cost(sizes: Sizes) -> Cost:
    """Each query is multiplied by M once, then by every key."""
    batch, n, m, (d_q, d_k, _) = sizes
    return Cost(d_q * d_k, batch * (n * d_q * d_k + n * m * d_k))


def _additive_cost(sizes: Sizes) -> Cost:
    """Each query and each key is projected once; every pair is multiplied by w_v."""
    batch, n, m, (d_q, d_k, h) = sizes
    return Cost(h * (d_q + d_k + 1), batch * h * (n * d_q + m * d_k + n * m))


FUNCTIONS: tuple[ScoringFunction[Any], ...] = (
    ScoringFunction("dot", r"q^\top k", lambda _, q, k: dot_scores(q, k), _dot_cost, one_width=True),
    ScoringFunction(
        "scaled", r"q^\top k / \sqrt d", lambda _, q, k: scaled_dot_scores(q, k), _scaled_cost, one_width=True
    ),
    ScoringFunction("general", r"q^\top M k", lambda M, q, k: general_scores(q, k, M[0]), _general_cost, make_matrix),
    ScoringFunction("additive", r"w_v^\top \tanh(W_q q + W_k k)", _additive_scores, _additive_cost, make_additive),
)

BY_NAME = {function.name: function for function in FUNCTIONS}
