"""What a scoring function says of itself, once: its formula, its cost, and how to make what it learns."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.trace.arguments import check_axes, check_tensors

Queries: TypeAlias = Float[Tensor, "batch queries query_size"]
Keys: TypeAlias = Float[Tensor, "batch keys key_size"]
Scores: TypeAlias = Float[Tensor, "batch queries keys"]
Learned = TypeVar("Learned", bound=nn.Module)


class ScoreWidths(NamedTuple):
    """Widths of queries and of keys, and the hidden width of functions that project both."""

    query_size: int
    key_size: int
    num_hiddens: int


class ScoreSizes(NamedTuple):
    """How many queries are scored against how many keys in each of `batch` rows, and their widths."""

    batch: int
    queries: int
    keys: int
    widths: ScoreWidths


class ScoreCost(NamedTuple):
    """Numbers learned, and multiplications for all pairs, projections included."""

    parameters: int
    multiplications: int


def _nothing(_widths: ScoreWidths, _seed: int) -> nn.Module:
    return nn.ParameterList()


@dataclass(frozen=True)
class ScoringFunction(Generic[Learned]):
    """a(q, k): a number for every query and key.

    A constant of this type in a module of this package is found by itself. Its words are `option.NAME` and
    `formula.NAME` of the chapter "scoring-functions", in every language.
    """

    name: str  # as in the register, in links and in words
    order: int  # place in every list; no two are alike
    formula: str  # a(q, k) in LaTeX
    scores: Callable[[Learned, Queries, Keys], Scores]  # of every query and key, by what it has learned
    cost: Callable[[ScoreSizes], ScoreCost]  # by size
    # what it learns, for these widths, its numbers drawn from a generator of their own with this seed
    make: Callable[[ScoreWidths, int], Learned] = _nothing  # type: ignore[assignment]
    one_width: bool = False  # whether queries and keys must be equally wide
    code: tuple[Callable[..., Any], ...] = ()  # its functions and classes, whose source the chapter shows

    def takes(self, widths: ScoreWidths) -> bool:
        """Whether it is defined for queries and keys of these widths."""
        return not self.one_width or widths.query_size == widths.key_size

    @property
    def learns(self) -> bool:
        """Whether it has parameters."""
        return self.make is not _nothing


def batch_product(X: Float[Tensor, "batch n m"], Y: Float[Tensor, "batch m p"]) -> Float[Tensor, "batch n p"]:
    """Z_b = X_b Y_b, one matrix product for each b: Z[b, i, j] = sum_l X[b, i, l] Y[b, l, j].

    (Dive into Deep Learning, section "Batch Matrix Multiplication".)

    Raises:
        ValueError: if either is not a batch of matrices of floating-point numbers, they differ in type or device, the
            batches differ in size, or X has not as many columns as Y has rows.
    """
    check_tensors(X=X, Y=Y)
    if X.dim() != 3 or Y.dim() != 3:
        raise ValueError(f"expected two batches of matrices, got shapes {tuple(X.shape)} and {tuple(Y.shape)}")
    if X.shape[0] != Y.shape[0]:
        raise ValueError(f"expected batches of one size, got {X.shape[0]} and {Y.shape[0]}")
    if X.shape[2] != Y.shape[1]:
        raise ValueError(f"expected as many columns in X as rows in Y, got {X.shape[2]} and {Y.shape[1]}")
    return torch.bmm(X, Y)


def check_same_width(queries: Tensor, keys: Tensor) -> None:
    """Raise ValueError unless queries and keys are (..., n, width) of one width, type and device."""
    check_tensors(queries=queries, keys=keys)
    check_axes("... n width", queries=queries, keys=keys)
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError(f"expected queries and keys of one width, got {queries.shape[-1]} and {keys.shape[-1]}")
