"""Special cases of attention weights: what a weighted sum of values can be when the weights may not be anything."""

import torch
from jaxtyping import Float
from torch import Tensor

CASES = ("free", "non-negative", "convex", "one-hot", "uniform")
"""From any weights to those that leave no choice (Dive into Deep Learning, section "Queries, Keys, and Values")."""


def weights_of_case(raw: Float[Tensor, " values"], case: str) -> Float[Tensor, " values"]:
    """The weights that a case makes of `raw`:

    free          any numbers: the output lies in the span of the values
    non-negative  max(0, a_i): it lies in their cone
    convex        max(0, a_i) / sum_j max(0, a_j): it lies in their convex hull
    one-hot       1 for the largest (the first of equals), else 0: it is one of them
    uniform       1 / m for each of m: it is their mean, average pooling
    """
    if len(raw) == 0 or not raw.isfinite().all():
        raise ValueError(f"raw: expected at least one finite number, got {raw.tolist()}")
    if case == "free":
        return raw.clone()
    if case == "one-hot":
        return torch.zeros_like(raw).index_fill(0, raw.argmax(), 1.0)
    if case == "uniform":
        return torch.full_like(raw, 1 / len(raw))
    positive = raw.clamp_min(0)
    if case == "non-negative":
        return positive
    if not positive.any():
        raise ValueError("raw: expected at least one positive weight, got none")
    scaled = positive / positive.max()  # so that the sum cannot overflow
    return scaled / scaled.sum()


def cases_met(weights: Float[Tensor, " values"], tolerance: float = 1e-9) -> tuple[str, ...]:
    """The cases that these weights are, in the order of CASES."""
    non_negative = bool((weights >= -tolerance).all())
    convex = non_negative and abs(float(weights.sum()) - 1) <= tolerance * max(1, len(weights))
    one_hot = convex and float(weights.max()) >= 1 - tolerance
    uniform = convex and float(weights.max() - weights.min()) <= tolerance
    met = (True, non_negative, convex, one_hot, uniform)
    return tuple(case for case, holds in zip(CASES, met, strict=True) if holds)


def copy_error(weights: Float[Tensor, " values"]) -> float:
    """max |w I - w|: with the identity matrix for values, the output is the weights themselves."""
    return float((weights @ torch.eye(len(weights), dtype=weights.dtype) - weights).abs().max())
