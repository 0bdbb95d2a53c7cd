"""What a scoring function says of itself, once: its formula, its cost, and how to make what it learns."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from jaxtyping import Float
from torch import Tensor, nn

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
