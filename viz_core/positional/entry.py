"""What a position scheme is, the register's entries of schemes, and the entry without positions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from viz_core.trace.arguments import check_axes, check_tensors, check_whole
from viz_core.trace.weights import Bias


class PositionScheme:
    """softmax(scale rotate(Q) rotate(K)^T + bias) V: positions rotate queries and keys, add to their scores, or both.

    The base class does neither: attention without positions. Keys are at positions 0 .. k - 1 and queries are the last
    q of them, as when a decoder with a cache computes its newest steps, so there are at least as many keys as queries.
    """

    def rotate(self, x: Float[Tensor, "batch heads n d"], start: int = 0) -> Float[Tensor, "batch heads n d"]:  # noqa: ARG002
        """Queries or keys at positions start .. start + n - 1, rotated by their positions."""
        return x

    def bias(self, queries: Float[Tensor, "batch heads queries d"], num_keys: int) -> Bias | None:  # noqa: ARG002
        """What is added to the scaled scores of these queries, broadcast over batch and heads; None for nothing."""
        return None


Positions: TypeAlias = PositionScheme | Callable[[], PositionScheme]
"""What a stack of layers takes: one scheme that all layers share, as in T5, or a function that makes one for each."""


def scheme_of(positions: Positions | None) -> PositionScheme | None:
    """The shared scheme itself, or a new one from the function that makes it; ValueError if it is neither."""
    makes = callable(positions) and not isinstance(positions, PositionScheme | nn.Module)
    scheme = positions() if makes else positions  # type: ignore[operator]
    if scheme is not None and not isinstance(scheme, PositionScheme):
        raise ValueError(f"positions: expected a scheme, as Rotary(), or a function that makes one, got {positions!r}")
    return scheme


def relative_positions(
    num_queries: int, num_keys: int, device: torch.device | None = None
) -> Int[Tensor, "queries keys"]:
    """Position of key j minus position of query i: j - (i + k - q), negative for keys in the past.

    Keys are at positions 0 .. k - 1. Queries are the last q of these, as when a decoder with a cache
    computes its newest steps; with as many queries as keys this is j - i.

    Raises:
        ValueError: if num_queries is not a positive whole number, or num_keys is below num_queries.
    """
    check_whole(num_queries=num_queries, num_keys=num_keys)
    if num_keys < num_queries:
        raise ValueError(f"num_keys: expected at least num_queries={num_queries}, got {num_keys}")
    positions = torch.arange(num_keys, device=device)
    return positions - positions[num_keys - num_queries :, None]


def check_span(X: Tensor, offset: int, max_len: int, num_hiddens: int) -> None:
    """Raise ValueError for embeddings of another width or not within positions 0 .. max_len - 1."""
    check_tensors(X=X)
    check_axes("batch n num_hiddens", X=X)
    check_whole(0, offset=offset)
    if X.shape[-1] != num_hiddens:
        raise ValueError(f"X: expected width {num_hiddens}, got shape {tuple(X.shape)}")
    end = offset + X.shape[1]
    if end > max_len:
        raise ValueError(f"sequence length: expected at most max_len={max_len} positions, got {end}")


def check_queries(q: Tensor, num_tokens: int | None, head_dim: int | None, num_heads: int | None = None) -> None:
    """Raise ValueError unless queries are (batch, num_heads, num_tokens, head_dim); None means any number."""
    check_tensors(q=q)
    shape = tuple(q.shape)
    expected = {"heads": num_heads, "queries": num_tokens, "d": head_dim}
    if len(shape) != 4 or any(size not in (None, own) for size, own in zip(expected.values(), shape[1:], strict=True)):
        form = ", ".join(str(name if size is None else size) for name, size in expected.items())
        raise ValueError(f"q: expected shape (batch, {form}), got {shape}")


def check_learned(num_keys: int, num_tokens: int) -> None:
    """Raise ValueError for more keys than a table has learned positions for."""
    check_whole(num_keys=num_keys)
    if num_keys > num_tokens:
        raise ValueError(f"num_keys: expected at most num_tokens={num_tokens}, got {num_keys}")


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


NONE = SchemeEntry(
    "none",
    order=0,
    formula=r"q_i \cdot k_j / \sqrt{d}",
    enters="nowhere",
    depends_on="nothing",
    extrapolates=True,
    cost=lambda _: SchemeCost(),
    task_name="none",
)
