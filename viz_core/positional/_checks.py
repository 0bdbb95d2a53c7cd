"""Checks that the position modules share, with the same errors."""

from __future__ import annotations

from torch import Tensor

from viz_core.trace.arguments import check_axes, check_tensors, check_whole


def check_span(X: Tensor, offset: int, max_len: int, num_hiddens: int) -> None:
    """Refuse embeddings of another width, or that do not lie within positions 0 .. max_len - 1.

    Raises:
        ValueError: naming what was expected and what was given.
    """
    check_tensors(X=X)
    check_axes("batch n num_hiddens", X=X)
    check_whole(0, offset=offset)
    if X.shape[-1] != num_hiddens:
        raise ValueError(f"X: expected width {num_hiddens}, got shape {tuple(X.shape)}")
    end = offset + X.shape[1]
    if end > max_len:
        raise ValueError(f"sequence length: expected at most max_len={max_len} positions, got {end}")


def check_queries(q: Tensor, num_tokens: int | None, head_dim: int, num_heads: int | None = None) -> None:
    """Refuse queries that are not (batch, num_heads, num_tokens, head_dim); None means any number.

    Raises:
        ValueError: naming both shapes.
    """
    check_tensors(q=q)
    shape = tuple(q.shape)
    fits = len(shape) == 4 and shape[3] == head_dim and num_heads in (None, shape[1])
    if not fits or num_tokens not in (None, shape[2]):
        heads = "heads" if num_heads is None else num_heads
        tokens = "queries" if num_tokens is None else num_tokens
        raise ValueError(f"q: expected shape (batch, {heads}, {tokens}, {head_dim}), got {shape}")


def check_learned(num_keys: int, num_tokens: int) -> None:
    """Refuse more keys than a table has learned positions for.

    Raises:
        ValueError: naming both numbers.
    """
    check_whole(num_keys=num_keys)
    if num_keys > num_tokens:
        raise ValueError(f"num_keys: expected at most num_tokens={num_tokens}, got {num_keys}")
