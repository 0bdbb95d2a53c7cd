"""What positions do inside an attention: the one small face that every scheme there has."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from jaxtyping import Float
from torch import Tensor, nn

from viz_core.trace.weights import Bias


class PositionScheme:
    """softmax(scale turn(Q) turn(K)^T + bias) V: positions turn queries and keys, add to their scores, or both.

    By itself it does neither: attention without positions. Keys stand at 0 .. k - 1 and queries are the last q of
    them, as when a decoder with a cache asks for its newest steps; so a scheme needs as many keys as queries, or more.
    """

    def turn(self, x: Float[Tensor, "batch heads n d"], start: int = 0) -> Float[Tensor, "batch heads n d"]:  # noqa: ARG002
        """Queries or keys that stand at start .. start + n - 1, with their positions in them."""
        return x

    def bias(self, queries: Float[Tensor, "batch heads queries d"], num_keys: int) -> Bias | None:  # noqa: ARG002
        """What is added to the scaled scores of these queries, broadcast over batch and heads; None for nothing."""
        return None


Positions: TypeAlias = PositionScheme | Callable[[], PositionScheme]
"""What a stack takes: one scheme that all its layers share, as in T5, or a function that makes each its own."""


def scheme_of(positions: Positions | None) -> PositionScheme | None:
    """The shared scheme itself, or a new one from its maker: `scheme_of(ALiBi)`.

    Raises:
        ValueError: if it is neither.
    """
    makes = callable(positions) and not isinstance(positions, PositionScheme | nn.Module)
    scheme = positions() if makes else positions  # type: ignore[operator]
    if scheme is not None and not isinstance(scheme, PositionScheme):
        raise ValueError(f"positions: expected a scheme, as Rotary(), or a function that makes one, got {positions!r}")
    return scheme
