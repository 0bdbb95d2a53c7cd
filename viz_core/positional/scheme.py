"""The interface of position schemes that enter inside attention."""

from collections.abc import Callable
from typing import TypeAlias

from jaxtyping import Float
from torch import Tensor, nn

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
