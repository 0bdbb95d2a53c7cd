"""What every learned projection of queries, keys and values asks of its input."""

from __future__ import annotations

from torch import Tensor, nn


def check_width(name: str, X: Tensor, projection: nn.Linear) -> None:
    """Refuse an input that its projection cannot take.

    Raises:
        ValueError: unless X has shape (batch, n, the projection's width).
    """
    if X.dim() != 3 or X.shape[-1] != projection.in_features:
        raise ValueError(f"{name}: expected shape (batch, n, {projection.in_features}), got {tuple(X.shape)}")
