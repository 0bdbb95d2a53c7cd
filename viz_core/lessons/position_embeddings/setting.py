"""What every scheme is tried on: the same tokens and the same attention layer, of given sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.trace.arguments import check_whole


@dataclass(frozen=True)
class Sizes:
    """All that the cost of a scheme depends on.

    Args:
        num_tokens: n, also the length the scheme is trained for.
        num_hiddens: d; each head is d / h wide.
        num_heads: h, a divisor of d.
        height, width: the grid of the 2-D scheme, height * width = n. A line of tokens is one row high.
        max_distance: clipping distance k of Shaw's scheme.
        num_buckets: of T5.
        per_head: whether each head has relative tables of its own.

    Raises:
        ValueError: if a size is below 1, h does not divide d, d / h is odd, or the grid has not n cells.
    """

    num_tokens: int
    num_hiddens: int
    num_heads: int
    height: int
    width: int
    max_distance: int = 4
    num_buckets: int = 32
    per_head: bool = False

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


@dataclass(frozen=True, eq=False)
class Setting:
    """Tokens, and the one attention layer that they meet under every scheme.

    The layer's projections and every table are drawn from `seed`: nothing here is trained. Tables are
    drawn so that each scheme adds scores of about the same size, a standard deviation near 1.

    Args:
        X: (n, d) token vectors of about unit variance.
        sizes: n, d and the rest; n and d must be those of X.
        table: (n, d) learned positions to use in place of random ones.

    Raises:
        ValueError: if X or table does not fit the sizes.
    """

    X: Float[Tensor, "n d"]
    sizes: Sizes
    table: Float[Tensor, "n d"] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        expected = (self.sizes.num_tokens, self.sizes.num_hiddens)
        for name, tensor in (("X", self.X), ("table", self.table)):
            if tensor is not None and tuple(tensor.shape) != expected:
                raise ValueError(f"{name}: expected shape {expected}, got {tuple(tensor.shape)}")

    def draw(self, what: int, *shape: int) -> Tensor:
        """Standard normal numbers, always the same for the same seed, `what` and shape."""
        generator = torch.Generator().manual_seed(1000 * self.seed + what)
        return torch.randn(*shape, generator=generator)

    def permuted(self, order: Int[Tensor, "n"]) -> Setting:
        """The same layer and positions, with the tokens in another order."""
        return replace(self, X=self.X[order])

    def one_word(self) -> Setting:
        """The first token at every position: whatever then differs between scores is the work of positions."""
        return replace(self, X=self.X[:1].expand_as(self.X))
