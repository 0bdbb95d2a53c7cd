"""How the product of a rotated query and key changes with the distance between them."""

from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor

from viz_core.lessons.position_embeddings.broken import added_residuals
from viz_core.positional.rotary import apply_rotary

Vector: TypeAlias = Float[Tensor, " d"]
Offsets: TypeAlias = Real[Tensor, " n"]
Line: TypeAlias = Float[Tensor, " n"]

REACH = 200
CLOSE, FAR = (1, 50), (151, 200)  # distances whose mean sizes are compared


class DecayCurves(NamedTuple):
    """q_m . k_n by offset n - m from -REACH to REACH, for q = k of equal components and length 1."""

    offsets: Int[Tensor, " n"]
    products: Line
    product: float  # at the offset chosen
    # close_mean, far_mean: mean |q_m . k_n| over the distances CLOSE and FAR
    close_mean: float
    far_mean: float


class RotaryProofs(NamedTuple):
    """Residuals of random q and k over all offsets: the first two are near 0."""

    shift: float  # change of q_m . k_n when both positions grow by 1,000
    length: float  # change of |q| by rotation
    # added_shift, added_length: the same changes where positions are added instead
    added_shift: float
    added_length: float


def decay_curves(num_hiddens: int, base: float, offset: int) -> DecayCurves:
    """Products of one width and base, with those of one offset by themselves."""
    q = torch.ones(num_hiddens, dtype=torch.float64) * num_hiddens**-0.5
    offsets = torch.arange(-REACH, REACH + 1)
    products = rotary_products(q, q, offsets, base)
    close, far = (mean_size(products, offsets, *distances) for distances in (CLOSE, FAR))
    return DecayCurves(offsets, products, float(products[REACH + offset]), close, far)


def rotary_proofs(num_hiddens: int, base: float) -> RotaryProofs:
    """What must hold of rotations of this width and base, measured on one random q and k."""
    generator = torch.Generator().manual_seed(num_hiddens)
    q, k = torch.randn(2, num_hiddens, dtype=torch.float64, generator=generator)
    offsets = torch.arange(-REACH, REACH + 1)
    rotated = apply_rotary(q.expand(1, 1, len(offsets), -1), offsets, base)
    shift = rotary_shift_residual(q, k, offsets, base)
    length = float((rotated.norm(dim=-1) - q.norm()).abs().max())
    return RotaryProofs(shift, length, *added_residuals(q, k, offsets, base))


def rotary_products(q: Vector, k: Vector, offsets: Offsets, base: float = 10000.0, start: float = 0.0) -> Line:
    """q_m . k_n for one query vector at position `start` and one key vector at start + offset."""
    keys = apply_rotary(k.expand(1, 1, len(offsets), -1), offsets + start, base)
    query = apply_rotary(q[None, None, None], offsets.new_full((1,), start, dtype=torch.float64), base)
    return (keys @ query.transpose(-2, -1))[0, 0, :, 0]


def mean_size(products: Line, offsets: Offsets, nearest: int, farthest: int) -> float:
    """Mean of |q_m . k_n| over the offsets whose distance is from `nearest` to `farthest`."""
    distance = offsets.abs()
    return float(products[(distance >= nearest) & (distance <= farthest)].abs().mean())


def rotary_shift_residual(q: Vector, k: Vector, offsets: Offsets, base: float = 10000.0, shift: float = 1000) -> float:
    """Largest change of q_m . k_n over these offsets when both positions grow by `shift`: 0 if only m - n matters."""
    here, there = (rotary_products(q, k, offsets, base, start) for start in (0.0, shift))
    return float((here - there).abs().max())
