"""Rotary positions: rotated queries and keys, whose product depends on their offset alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Real
from torch import Tensor

from viz_core.positional.entry import SchemeCost, SchemeEntry, SchemeSizes
from viz_core.positional.scheme import PositionScheme
from viz_core.positional.sinusoidal import angular_frequencies
from viz_core.trace.arguments import check_axes, check_device, check_tensors, described, is_whole


def apply_rotary(
    x: Float[Tensor, "batch heads n d"],
    positions: Real[Tensor, "n"] | Real[Tensor, "batch n"],
    base: float = 10000.0,
    interleaved: bool = True,
) -> Float[Tensor, "batch heads n d"]:
    """Rotate each pair of components by the angle position * omega_j, with omega_j = base^(-2j/d).

        (a, b) -> (a cos - b sin, a sin + b cos)       (Su 2021, equations 14, 15 and 34)

    Apply it to queries and to keys, never to values: q_m . k_n then depends on m - n alone.

    Args:
        x: queries or keys, split into heads.
        positions: one for each token, or one for each token of each batch row; whole or not, negative too.
        base: the base of the angular frequencies.
        interleaved: True pairs components (2j, 2j + 1), as in the paper; False pairs (j, j + d/2), the
            half-split form of Llama and GPT-NeoX. One is a permutation of the other's components, so
            weights trained with one form are wrong under the other.

    Returns:
        The type of x. Angles are float64, the rotation at least float32, rounded once at the end.

    Raises:
        ValueError: if x is no floating-point tensor (batch, heads, n, d) with even d, positions are no numbers that fit
            x, or base is not positive.
    """
    check_tensors(x=x)
    if x.dim() != 4 or x.shape[-1] % 2:
        raise ValueError(f"x: expected (batch, heads, n, d) with an even d, got shape {tuple(x.shape)}")
    batch, _, n, d = x.shape
    if not isinstance(positions, Tensor) or positions.dtype == torch.bool or positions.is_complex():
        raise ValueError(f"positions: expected a tensor of numbers, got {described(positions)}")
    check_device(x=x, positions=positions if positions.is_meta else None)
    if tuple(positions.shape) not in ((n,), (batch, n)):  # no set: an exporter's sizes have no hash
        raise ValueError(f"positions: expected shape ({n},) or ({batch}, {n}), got {tuple(positions.shape)}")
    # On the CPU: some accelerators have no float64, and every device rotates by the same angles.
    angles = positions.to("cpu", torch.float64)[..., None] * angular_frequencies(d, base)
    if positions.dim() == 2:
        angles = angles[:, None]  # the same for every head
    compute = torch.promote_types(x.dtype, torch.float32)
    cos, sin = angles.cos().to(x.device, compute), angles.sin().to(x.device, compute)
    a, b = (x[..., 0::2], x[..., 1::2]) if interleaved else x.chunk(2, dim=-1)
    rotated = (a * cos - b * sin, a * sin + b * cos)
    out = torch.stack(rotated, dim=-1).flatten(-2) if interleaved else torch.cat(rotated, dim=-1)
    return out.to(x.dtype)


@dataclass(frozen=True)
class Rotary(PositionScheme):
    """`apply_rotary` on the queries and keys of attention; it has no parameters.

    Args:
        base, interleaved: as in `apply_rotary`. Llama, Mistral and Gemma use interleaved=False.

    Raises:
        ValueError: if base is not positive.
    """

    base: float = 10000.0
    interleaved: bool = True

    def __post_init__(self) -> None:
        angular_frequencies(1, self.base)  # checks the base

    def rotate(self, x: Float[Tensor, "batch heads n d"], start: int = 0) -> Float[Tensor, "batch heads n d"]:
        """x rotated by the angles of positions start .. start + n - 1 (Su 2021, equation 34).

        Raises:
            ValueError: if x is no floating-point tensor (batch, heads, n, d), start is negative, as where there are
                more queries than keys, or d is odd.
        """
        check_tensors(x=x)
        check_axes("batch heads n d", x=x)
        if not is_whole(start) or start < 0:
            raise ValueError(f"start: expected at least 0, with as many keys as queries or more, got {start}")
        return apply_rotary(x, torch.arange(start, start + x.shape[2]), self.base, self.interleaved)


def _cost(sizes: SchemeSizes) -> SchemeCost:
    """n w stored: a cosine and a sine for each position and pair (Su 2021, equation 34)."""
    return SchemeCost(stored=sizes.num_tokens * sizes.head_dim)


ROTARY = SchemeEntry(
    "rotary",
    order=7,
    formula=r"\langle R_m q,\ R_n k \rangle = \langle q,\ R_{n - m} k \rangle",
    enters="rotation",
    depends_on="offset",
    extrapolates=True,
    cost=_cost,
    make=lambda _: Rotary(),
    task_name="rotary",
    code=(apply_rotary,),
)
