"""Checks that the position modules share, with the same errors."""

from torch import Tensor

from viz_core.trace.arguments import check_axes, check_tensors, check_whole


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
