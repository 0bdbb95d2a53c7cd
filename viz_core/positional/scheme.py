"""The interface of position schemes that enter inside attention, with the offsets and checks they share."""

from collections.abc import Callable
from typing import TypeAlias

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
