"""What a position scheme says of itself, once: its place in lists, its cost, and how to make it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from torch import nn

from viz_core.positional.scheme import PositionScheme
from viz_core.trace.arguments import check_whole

_BYTES = 4  # float32


@dataclass(frozen=True)
class SchemeSizes:
    """Sizes that a scheme is made for, and that its cost depends on.

    Raises:
        ValueError: if a size is below 1, h does not divide d, d / h is odd, or the grid has not n cells.
    """

    num_tokens: int  # n, also the length the scheme is trained for
    num_hiddens: int  # d; each head is d / h wide
    num_heads: int  # h, a divisor of d
    # height, width: the grid of the 2-D scheme, height * width = n. A line of tokens is one row high.
    height: int
    width: int
    max_distance: int = 4  # clipping distance k of Shaw's scheme
    num_buckets: int = 32  # of T5
    per_head: bool = False  # whether each head has relative tables of its own
    # whether a query sees keys after it; T5 gives these no buckets of their own where it does not
    bidirectional: bool = True

    def __post_init__(self) -> None:
        check_whole(num_tokens=self.num_tokens, num_hiddens=self.num_hiddens, num_heads=self.num_heads)
        if self.num_hiddens % (2 * self.num_heads):
            raise ValueError(
                f"num_hiddens: expected a multiple of 2 * num_heads={2 * self.num_heads}, got {self.num_hiddens}"
            )
        if self.height * self.width != self.num_tokens:
            raise ValueError(f"height x width: expected {self.num_tokens} cells, got {self.height} x {self.width}")

    @property
    def head_dim(self) -> int:
        """d / h."""
        return self.num_hiddens // self.num_heads

    @property
    def tables(self) -> int | None:
        """How many relative tables there are, as `num_heads` of the relative modules: None is one for all heads."""
        return self.num_heads if self.per_head else None

    @property
    def score_map(self) -> int:
        """h n^2: the size of all heads' score maps."""
        return self.num_heads * self.num_tokens**2

    def scores_by_offset(self, side: int) -> int:
        """h n (2 side - 1): for each head and token, one score for each offset along a line of `side` tokens."""
        return self.num_heads * self.num_tokens * (2 * side - 1)


@dataclass(frozen=True)
class SchemeCost:
    """Numbers a scheme needs in one layer, beyond attention without positions."""

    parameters: int = 0  # learned
    stored: int = 0  # kept between calls: parameters and fixed tables
    computed: int = 0  # score-sized numbers made beside Q K^T for one sequence

    @classmethod
    def learned(cls, parameters: int, computed: int = 0) -> "SchemeCost":
        """The cost where all that is stored is learned."""
        return cls(parameters, parameters, computed)

    @property
    def stored_bytes(self) -> int:
        """What is stored, in bytes of float32."""
        return _BYTES * self.stored

    @property
    def computed_bytes(self) -> int:
        """What is computed, in bytes of float32."""
        return _BYTES * self.computed


@dataclass(frozen=True)
class SchemeEntry:
    """One position scheme in the register. A constant of this type in a module of this package is found by itself.

    Its words are `option.NAME`, `about.NAME`, `formula.NAME` (of its parameters) and `extends.NAME` of the chapter
    "position-embeddings", in every language; "learning" has `option.TASK_NAME` where `task_name` is given.
    """

    name: str  # as in the register, in links and in words
    order: int  # place in every list; no two are alike
    formula: str  # the scaled scores, or what the scheme changes in them, in LaTeX
    enters: Literal["nowhere", "input", "rotation", "scores"]  # where positions enter
    # what its part of the scores depends on beside the tokens: the position of the key or of both tokens, the offset
    # between them along a line or on a grid, or the distance, which is an offset without sign
    depends_on: Literal["nothing", "distance", "offset", "grid-offset", "position"]
    extrapolates: bool  # whether its scores are defined for sequences longer than those it was trained on
    cost: Callable[[SchemeSizes], SchemeCost]  # numbers learned, stored and computed, by size
    make: Callable[[SchemeSizes], PositionScheme] = lambda _sizes: PositionScheme()  # what it does inside an attention
    # the layer (num_tokens, num_hiddens) that adds its positions to the embeddings, if it does
    make_input: Callable[[int, int], nn.Module] | None = None
    # standard deviation that a lesson draws its parameters with, so that all schemes are about equally strong
    std: float = 1.0
    seed: int = 0  # of these draws; no two schemes with parameters have the same
    task_name: str | None = None  # what the learning tasks call it; None where they do not offer it
    code: tuple[Callable[..., Any], ...] = ()  # its functions and classes, whose source the chapter shows
